"""The registry, and the paper's policy as a whole: its rules in order, each of which can be switched off."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from dasec.model import Decision, Knob, Knobs, Period, PolicyState, VcpuId
from dasec.paper import Dasec, DasecState
from dasec.plan import plan
from dasec.policies import POLICIES, Parameters, policy_named
from dasec.rcr import RcrParameters
from dasec.rla import RlaParameters
from dasec.tsa import TsaParameters

from ..builders import READY, Group, Row, core_set, period, vcpu_id
from ..properties.invariants import after


def hungry_on_core_0() -> Period:
    """a0 and a1 on core 0 used their 40 ms and are ready; a2 and a3 on core 1 are ready, and used little."""
    return period(
        Group(
            "a",
            [Row(40, READY, core=0), Row(40, READY, core=0), Row(5, READY, core=1), Row(5, READY, core=1)],
        )
    )


def switched(*, tsa: bool = False, rla: bool = False, rcr: bool = False) -> Dasec:
    return Dasec(TsaParameters(enabled=tsa), RlaParameters(enabled=rla), RcrParameters(enabled=rcr))


def knobs_changed(decision: Decision) -> set[Knob]:
    return {reason.knob for reason in decision.reasons}


def decided(policy: Dasec, made: Period) -> Decision:
    """What the policy decides once it has seen everybody."""
    return policy.decide(made, DasecState(started=tuple(made.knobs)))


@pytest.mark.parametrize("name", ["none", "dasec", "critical", "static"])
def test_a_policy_is_found_by_its_name(name: str) -> None:
    assert policy_named(name, Parameters()).name == name


def test_an_unknown_name_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match="policy 'dasek': not known: use one of none, dasec, critical"):
        policy_named("dasek", Parameters())


@pytest.mark.parametrize("name", POLICIES)
def test_a_policy_decides_from_its_initial_state_and_from_that_of_any_other(name: str) -> None:
    policy = policy_named(name, Parameters())
    for other in POLICIES:
        state = policy_named(other, Parameters()).initial_state()
        decision = policy.decide(hungry_on_core_0(), state)
        assert isinstance(policy.decide(hungry_on_core_0(), decision.state), Decision)


def test_all_three_rules_act_together_and_their_wishes_for_a_vcpu_are_one() -> None:
    # TSA: 1126 1126 922 922. RLA: a2, a3 4000 → 3600 (a0, a1 exhausted and ready: TSA's business)
    # RCR: core 0 has 2 × 43.98, core 1 has 2 × 36.02 → a0 ↔ a2
    decision = decided(Dasec(), hungry_on_core_0())
    assert decision.knobs == {
        vcpu_id(0, 0): Knobs(1126, None, core_set(1)),
        vcpu_id(0, 1): Knobs(1126, None, None),
        vcpu_id(0, 2): Knobs(922, 3_600_000, core_set(0)),
        vcpu_id(0, 3): Knobs(922, 3_600_000, None),
    }
    rules = [reason.rule for reason in decision.reasons]
    assert rules == [
        "tsa.raise", "tsa.raise", "tsa.scale", "tsa.scale", "rla.cut", "rla.cut", "rcr.slices", "rcr.slices",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        (switched(), set()),
        (switched(tsa=True), {Knob.WEIGHT}),
        (switched(rla=True), {Knob.RESCHEDULING_LATENCY}),
        (switched(rcr=True), set()),  # without TSA the slices are even
        (switched(tsa=True, rcr=True), {Knob.WEIGHT, Knob.AFFINITY}),
    ],
)
def test_each_rule_can_be_switched_off(policy: Dasec, expected: set[Knob]) -> None:
    assert knobs_changed(decided(policy, hungry_on_core_0())) == expected


def test_rla_judges_by_the_slices_that_held_in_the_period_not_by_those_to_come() -> None:
    # a0 used 39.5 of its 40 ms: exhausted. Of its coming slice of 43.98 it would need 39.98 at least; RLA
    # would cut its latency
    made = hungry_on_core_0()
    usage = {**made.usage, vcpu_id(0, 0): made.usage[vcpu_id(0, 0)]._replace(consumed_ns=39_500_000)}
    decision = decided(switched(tsa=True, rla=True), replace(made, usage=usage))
    assert decision.knobs[vcpu_id(0, 0)] == Knobs(1126, None, None)


def test_rcr_uses_the_latencies_after_rla() -> None:
    # all at 1556; a0 … a3 are cut to 1400, and RLA starts nobody. b sleeps at 1556
    rows = [Row(5, READY, core=row // 2, latency_us=1556, conflicts=9 * (row < 2)) for row in range(4)]
    made = period(
        Group("a", rows), Group("b", [Row(core=row // 2, latency_us=1556, pin=row // 2) for row in range(4)])
    )
    usage = {**made.usage}
    for row in range(4):
        usage[vcpu_id(1, row)] = made.usage[vcpu_id(0, row)]._replace(
            state=made.usage[vcpu_id(1, row)].state, conflicts=0
        )
    made = replace(made, usage=usage)
    assert Knob.AFFINITY not in knobs_changed(decided(switched(rcr=True), made))
    assert Knob.AFFINITY in knobs_changed(decided(switched(rla=True, rcr=True), made))


def test_the_start_value_is_written_once() -> None:
    made = period(Group("a", [Row(latency_us=1400), Row(latency_us=1400)]))
    policy = Dasec()
    first = policy.decide(made, policy.initial_state())
    assert {knobs.rescheduling_latency_ns for knobs in first.knobs.values()} == {4_000_000}
    assert policy.decide(made, first.state).knobs == {}


def test_what_a_rule_that_is_switched_off_remembers_stays() -> None:
    made = hungry_on_core_0()
    state = DasecState(((vcpu_id(4, 4),)), ((vcpu_id(5, 5), 3),), ((vcpu_id(6, 6), 512),))
    assert switched().decide(made, state).state == state
    neutral = tuple((vcpu, 1024) for vcpu in made.knobs)
    assert switched(tsa=True).decide(made, state).state == replace(state, neutral=neutral)


def test_a_workload_whose_threads_come_and_go_takes_no_weight_from_others() -> None:
    """One is always hungry; the three beside it give it weight, and end."""
    policy, state, knobs = switched(tsa=True), Dasec().initial_state(), dict[VcpuId, Knobs]()
    for index in range(60):
        made = period(Group("a", [Row(80, READY), *[Row(1)] * 3]), Group("b", [Row(40, READY)]), index=index)
        born = index // 6  # the others have another start time then
        name = {vcpu: vcpu._replace(start_ticks=born) for vcpu in made.knobs if 0 < vcpu.tid - 1001 < 4}
        made = renamed(made, name)
        made = replace(made, knobs={vcpu: knobs.get(vcpu, new) for vcpu, new in made.knobs.items()})
        decision = policy.decide(made, state)
        planned = plan(made, decision)
        assert planned.violations == ()
        knobs, state = dict(after(made, planned).knobs), decision.state
        weights = [there.weight or 0 for vcpu, there in knobs.items() if vcpu.pid == 1000]
        assert (len(weights), sum(weights)) == (4, 4096)
        assert len(knobs) == 5
    assert max(weights) > 2048


def renamed(made: Period, name: Mapping[VcpuId, VcpuId]) -> Period:
    """The same period with other threads in the places of these."""
    workloads = tuple(
        replace(each, vcpus=tuple(vcpu._replace(id=name.get(vcpu.id, vcpu.id)) for vcpu in each.vcpus))
        for each in made.workloads
    )
    usage = {name.get(vcpu, vcpu): used for vcpu, used in made.usage.items()}
    knobs = {name.get(vcpu, vcpu): there for vcpu, there in made.knobs.items()}
    core_of = {name.get(vcpu, vcpu): core for vcpu, core in made.core_of.items()}
    return replace(made, workloads=workloads, usage=usage, knobs=knobs, core_of=core_of)


def test_a_state_of_another_policy_is_no_memory() -> None:
    policy = Dasec()
    made = hungry_on_core_0()
    assert policy.decide(made, PolicyState()) == policy.decide(made, policy.initial_state())


def test_the_tick_of_tsa_is_the_tolerance_of_all_rules() -> None:
    # 37 of 40 ms: exhausted within a tick of 4 ms, not within one of 1 ms
    made = period(Group("a", [Row(37, READY), Row(), Row(), Row()]))
    strict = Dasec(TsaParameters(tick_ns=1_000_000))
    assert knobs_changed(decided(Dasec(), made)) == {Knob.WEIGHT}
    assert knobs_changed(decided(strict, made)) == {Knob.RESCHEDULING_LATENCY}
