"""The policy `critical` lends what vCPUs were given: from decision to plan, record and replay."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from dasec.bandwidth.parameters import BandwidthParameters
from dasec.budget import Outlay
from dasec.critical import Critical, CriticalParameters
from dasec.guard import Guarded
from dasec.log import Announcer
from dasec.model import Decision, Knob, Limits, Outcome, OwnLimit, Period, Result, VcpuId
from dasec.plan import plan
from dasec.policies import Parameters, policy_named
from dasec.record.entries import Entry, Stages
from dasec.record.file import RecordFile
from dasec.record.replay import replay

from ...builders import MS, Group, Row, period, vcpu_id
from .wishes import capped, caps_of

MAIN, HELPER, HOG, OTHER = (vcpu_id(0, row) for row in range(4))
ROWS = [
    Row(32, woken_by=[(1, 8)], wakeups=16, external=0, chain_ms=12),
    Row(6, woken_by=[(0, 8)], wakeups=8, external=0, chain_ms=12),
    Row(32, ready_ms=6, wakeups=0, external=0, chain_ms=0),
    Row(32, ready_ms=6, wakeups=0, external=0, chain_ms=0),
]
GIVEN = 400_000
LENDING = Critical(CriticalParameters(), BandwidthParameters(caps=True))


def divided(in_force: dict[VcpuId, int] | None = None, stopped_ms: int = 45) -> Period:
    """Four vCPUs with 0.4 of a core each; main and the hogs are stopped by that."""
    made = period(Group("vm", ROWS), cores=4)
    held = in_force or {}
    own = {
        vcpu: OwnLimit(held.get(vcpu, 0), stopped_ms * MS * (vcpu != HELPER), GIVEN)
        for vcpu in (MAIN, HELPER, HOG, OTHER)
    }
    return replace(made, limits={"vm": Limits(0, 0, 0, own)})


def decided(policy: Critical | Guarded, made: Period, looks: int = 10) -> Decision:
    """The first decision that lends, or the last."""
    state, decision = policy.initial_state(), Decision()
    for index in range(looks):
        decision = policy.decide(replace(made, index=index), state)
        if decision.workloads:
            break
        state = decision.state
    return decision


@pytest.mark.parametrize("policy", [LENDING, Guarded(LENDING)])
def test_those_that_nobody_waits_for_lend_half_of_what_they_were_given(policy: Critical | Guarded) -> None:
    decision = decided(policy, divided())
    assert caps_of(decision) == {HOG: 200_000, OTHER: 200_000}
    assert {(one.vcpu, one.rule) for one in decision.reasons if one.knob is Knob.CAP} == {
        (HOG, "bandwidth.lend"),
        (OTHER, "bandwidth.lend"),
    }


def test_who_is_waited_for_borrows_what_was_seen_to_be_lent() -> None:
    lending = decided(LENDING, divided())
    after = LENDING.decide(divided({HOG: 200_000, OTHER: 200_000}), lending.state)
    assert caps_of(after) == {MAIN: 800_000}
    assert [one.rule for one in after.reasons if one.knob is Knob.CAP] == ["bandwidth.borrow"]


def test_without_the_setting_nothing_is_lent() -> None:
    assert caps_of(decided(Critical(), divided())) == {}


def test_the_plan_refuses_quotas_that_come_to_more_than_was_given() -> None:
    planned = plan(divided(), Decision(workloads=capped({MAIN: 800_000, HOG: 200_000})))
    assert planned.changes == ()
    assert planned.violations == (
        "workload vm: quotas that add up to 1800000 ppm: must not be more than the 1600000 given",
    )


def test_the_plan_lets_a_borrower_have_a_whole_core_and_nobody_more() -> None:
    lent = {HOG: 200_000, OTHER: 100_000, HELPER: 300_000}
    assert [
        one.new for one in plan(divided(lent), Decision(workloads=capped({MAIN: 1_000_000}))).changes
    ] == [1_000_000]
    (violation,) = plan(divided(lent), Decision(workloads=capped({MAIN: 1_000_001}))).violations[:1]
    assert "must be from 20000 to 1000000" in violation


def test_a_record_with_loans_replays_from_its_start_and_from_a_later_file(tmp_path: Path) -> None:
    settings = Parameters((CriticalParameters(), BandwidthParameters(caps=True)))
    policy = policy_named("critical", settings)
    lent = {HOG: 200_000, OTHER: 200_000}
    looks = [
        *[divided()] * 7,
        divided(lent),
        *[divided({**lent, MAIN: 800_000}, stopped_ms=0)] * 6,
        *[divided(lent)] * 2,
    ]
    path = tmp_path / "r"
    file = RecordFile(path, policy.name, settings, Announcer(), max_bytes=6_000, files=30)
    state, lending = policy.initial_state(), 0
    for index, look in enumerate(looks):
        made = replace(look, index=index)
        decision = policy.decide(made, state)
        planned = plan(made, decision)
        results = tuple(Result(change, Outcome.APPLIED) for change in planned.changes)
        lending += sum(change.knob is Knob.CAP for change in planned.changes)
        file.write(Entry(1, 0, made, decision, results, planned.violations, Stages(), Outlay()), state)
        state = decision.state
    file.close()
    files = sorted(tmp_path.iterdir())
    assert len(files) > 2
    assert sum(replay(one).periods for one in files) == len(looks)
    assert lending >= 3
