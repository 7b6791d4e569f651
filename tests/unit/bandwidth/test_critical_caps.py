"""The policy `critical` caps whom it finds nobody waits for: from decision to plan, record and replay."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from dasec.bandwidth.parameters import BandwidthParameters
from dasec.bandwidth.rule import caps_after
from dasec.budget import Outlay
from dasec.critical import Critical, CriticalParameters
from dasec.guard import Guarded
from dasec.model import (
    Core,
    Decision,
    Knob,
    Knobs,
    Limits,
    OwnLimit,
    Period,
    Reason,
    Vcpu,
    VcpuId,
    Workload,
    WorkloadKnobs,
)
from dasec.plan import Plan, plan
from dasec.policies import Parameters
from dasec.record.encode import Encoder
from dasec.record.entries import Decoder, Entry, Stages

from ...builders import MS, Group, Row, period, vcpu_id
from .wishes import capped, caps_of

MAIN, HELPER, HOG, OTHER = (vcpu_id(0, row) for row in range(4))
ROWS = [
    Row(6, woken_by=[(1, 8)], wakeups=16, external=0, chain_ms=12),
    Row(6, woken_by=[(0, 8)], wakeups=8, external=0, chain_ms=12),
    Row(74, ready_ms=6, wakeups=0, external=0, chain_ms=0),
    Row(74, ready_ms=6, wakeups=0, external=0, chain_ms=0),
]

COMPUTES = Row(40, ready_ms=40, wakeups=0, external=0, chain_ms=0, outward=0)


def limited(caps_ppm: int = 0, throttled_ms: int = 10) -> Period:
    """A workload with a limit of two cores that is used up."""
    made = period(Group("vm", ROWS), cores=4)
    own = {vcpu: OwnLimit(0, 0) for vcpu in (MAIN, HELPER)}
    own |= {vcpu: OwnLimit(caps_ppm, throttled_ms * MS * bool(caps_ppm)) for vcpu in (HOG, OTHER)}
    return replace(made, limits={"vm": Limits(2_000_000, 0, 0 if caps_ppm else throttled_ms * MS, own)})


def decided(policy: Critical | Guarded, made: Period, looks: int = 10) -> Decision:
    state, decision = policy.initial_state(), Decision()
    for index in range(looks):
        decision = policy.decide(replace(made, index=index), state)
        state = decision.state
    return decision


CAPPING = Critical(CriticalParameters(), BandwidthParameters(caps=True))


@pytest.mark.parametrize("policy", [CAPPING, Guarded(CAPPING)])
def test_those_that_nobody_waits_for_are_capped_by_half_of_what_is_left(policy: Critical | Guarded) -> None:
    caps = caps_of(decided(policy, limited()))
    # 2.0 cores less 12 of 80 ms, and a margin of 2 %: 1.81 for two
    assert caps == {HOG: 905_000, OTHER: 905_000}


def test_vcpus_are_not_all_capped_because_qemus_main_thread_cannot_be() -> None:
    made = limited()
    workload = made.workloads[0]
    main = Vcpu(VcpuId(9, 9, 9), "qemu-system-x86", workload.vcpus[0].allowed, emulator=True)
    with_main = replace(made, workloads=(replace(workload, vcpus=(*workload.vcpus, main)),))
    everybody = {vcpu.id for vcpu in workload.vcpus}
    for seen in (made, with_main):
        assert not caps_after(seen, seen.workloads[0], (), None).wanted
        assert caps_after(seen, seen.workloads[0], everybody - {HOG}, None).wanted.keys() == {HOG}


def behind(*outward: int | None) -> Period:
    """A workload whose limit is used up; none of its threads ever sleeps, so nobody is woken."""
    return used_up([replace(COMPUTES, outward=count) for count in outward])


def used_up(rows: list[Row]) -> Period:
    own = {vcpu_id(0, row): OwnLimit(0, 0) for row in range(len(rows))}
    made = period(Group("vm", rows), cores=4)
    return replace(made, limits={"vm": Limits(2_000_000, 0, 120 * MS, own)})


def test_where_nobody_sleeps_those_that_wake_nobody_outside_are_capped() -> None:
    decision = decided(CAPPING, behind(40, 0, 1, 0), looks=4)
    assert caps_of(decision).keys() == {HELPER, HOG, OTHER}  # one wake-up in 40 ms of computing is too few
    assert decision.knobs == {}


@pytest.mark.parametrize("outward", [(0, 0, 0, 0), (40, 40, 40, 40), (None, None, None, None), (4, 2, 1, 0)])
def test_where_nobody_sleeps_and_all_or_none_wake_others_nobody_is_capped(outward: tuple[int | None]) -> None:
    """A wake-up in each 10 ms of computing is none: so many were seen of threads that only compute."""
    assert caps_of(decided(CAPPING, behind(*outward))) == {}


def test_who_wakes_somebody_once_and_hardly_runs_is_not_waited_for() -> None:
    """It says that it has begun, say, and waits for work that does not come."""
    begins, waits = (replace(COMPUTES, consumed_ms=ms, ready_ms=0, outward=ms) for ms in (1, 0))
    state = CAPPING.initial_state()
    for index, first in enumerate((begins, *[waits] * 9)):
        decision = CAPPING.decide(replace(used_up([first, *[COMPUTES] * 3]), index=index), state)
        assert caps_of(decision) == {}
        state = decision.state


def test_who_sleeps_again_after_a_backlog_is_waited_for_without_a_gap() -> None:
    sleeps = replace(COMPUTES, wakeups=20, external=20, chain_ms=40, outward=40)
    looks = [behind(40, 0, 0, 0)] * 10 + [used_up([sleeps, *[COMPUTES] * 3])] * 20
    state, wanted = CAPPING.initial_state(), set[tuple[VcpuId, bool]]()
    for index, look in enumerate(looks):
        decision = CAPPING.decide(replace(look, index=index), state)
        wanted |= {(vcpu, ppm > 0) for vcpu, ppm in caps_of(decision).items()}
        state = decision.state
    assert wanted == {(HELPER, True), (HOG, True), (OTHER, True)}


ANSWERED, ONLY_TIMERS = 15, 16


def beside_one_it_wakes(wakeups: int) -> Period:
    """MAIN has a backlog, so nobody wakes it, and wakes HELPER with each answer."""
    helper = Row(2, woken_by=[(0, ANSWERED)], wakeups=wakeups, external=0, chain_ms=2, outward=0)
    return used_up([replace(COMPUTES, outward=0), helper, *[COMPUTES] * 2])


def test_who_answers_a_client_inside_the_workload_is_not_capped() -> None:
    """The client's own timers wake it, too; its short bursts continue what MAIN began."""
    assert caps_of(decided(CAPPING, beside_one_it_wakes(ANSWERED + ONLY_TIMERS))).keys() == {HOG, OTHER}


def test_who_wakes_a_sibling_that_nobody_else_wakes_answers_nobody() -> None:
    """A logger: whoever computes may write a line every 3 ms."""
    assert caps_of(decided(CAPPING, beside_one_it_wakes(ANSWERED))).keys() == {MAIN, HOG, OTHER}


def test_without_the_setting_nobody_is_capped() -> None:
    assert caps_of(decided(Critical(), limited())) == {}


def test_caps_in_force_are_not_written_again() -> None:
    assert caps_of(decided(CAPPING, limited(905_000))) == {}


def test_the_plan_has_the_smaller_caps_first_and_those_that_go_last() -> None:
    made = limited(500_000)
    wanted: dict[VcpuId, int] = {OTHER: 0, HOG: 600_000, HELPER: 300_000, MAIN: 0}
    planned = plan(
        made, Decision(workloads=capped(wanted), reasons=(Reason(HOG, Knob.CAP, "bandwidth.cap"),))
    )
    assert [(change.vcpu, change.prior, change.new, change.rule) for change in planned.changes] == [
        (HELPER, 0, 300_000, "unexplained"),
        (HOG, 500_000, 600_000, "bandwidth.cap"),
        (OTHER, 500_000, 0, "unexplained"),
    ]


@pytest.mark.parametrize("ppm", [-1, 19_999, 1_000_000])
def test_a_cap_that_no_group_can_have_drops_the_workloads_caps(ppm: int) -> None:
    planned = plan(limited(), Decision(workloads=capped({HOG: ppm, OTHER: 500_000})))
    assert planned.changes == ()
    assert planned.violations == (
        f"workload vm: cap {ppm} ppm of tid {HOG.tid}: must be from 20000 to 1000000",
    )


@pytest.mark.parametrize(("latency_ns", "ppm"), [(0, 500_000), (5 * MS, 1)])
def test_what_is_wrong_with_one_knob_of_a_workload_drops_its_caps_and_its_latencies(
    latency_ns: int, ppm: int
) -> None:
    wish, well = Knobs(None, latency_ns, None), Knobs(None, 5 * MS, None)
    planned = plan(limited(), Decision({MAIN: wish}, workloads=capped({HOG: ppm})))
    assert (planned.changes, len(planned.violations)) == ((), 1)
    assert len(plan(limited(), Decision({MAIN: well}, workloads=capped({HOG: 500_000}))).changes) == 2


def test_nobody_caps_a_vcpu_of_another_workload() -> None:
    made = limited()
    theirs = vcpu_id(1, 0)
    other = Workload("db", 1024, (Vcpu(theirs, "theirs", frozenset({Core(0)})),))
    made = replace(made, workloads=(*made.workloads, other))
    planned = plan(made, Decision(workloads=capped({HOG: 500_000, theirs: 500_000})))
    assert planned.changes == ()
    assert planned.violations == (f"workload vm: cap of tid {theirs.tid}: is a vCPU of workload db",)


def test_a_cap_of_a_vcpu_that_has_gone_and_of_a_workload_without_a_limit_is_left_out() -> None:
    gone = vcpu_id(7, 7)
    planned = plan(limited(), Decision(workloads={**capped({gone: 500_000}), "db": WorkloadKnobs({HOG: 5})}))
    assert planned == Plan()


def test_limits_and_caps_are_recorded_and_read_back() -> None:
    made = limited(500_000)
    decision = Decision(workloads=capped({HOG: 600_000}))
    encoder, _ = Encoder.begin("critical", Parameters(), decision.state)
    line = encoder.line(Entry(1, 0, made, decision, (), (), Stages(), Outlay()))
    body = line.rpartition(b',"crc"')[0] + b"}"
    read, told = Decoder().period(body)
    assert read == made
    assert json.loads(body)["decision"]["caps"] == [[2, 600_000]]
    assert told["limits"].keys() == {"vm"}
