"""The policy that was told: who gets what, by name or thread id, and that it breaks no rule of the plan."""

from __future__ import annotations

from dataclasses import replace

from dasec.critical.oracle import Oracle, OracleParameters, OracleState
from dasec.model import NEUTRAL_WEIGHT, Decision, Period, PolicyState
from dasec.plan import plan

from ..builders import READY, Group, Row, period, vcpu_id
from ..properties.invariants import after


def applied(made: Period, decision: Decision) -> Period:
    """The same period again, with the knobs as decided."""
    return after(made, plan(made, decision))


def weights(policy: Oracle, made: Period, periods: int = 1) -> dict[tuple[int, int], int]:
    """(workload, row) → weight in force after so many equal periods; every plan on the way is clean."""
    state: PolicyState = policy.initial_state()
    for _ in range(periods):
        decision = policy.decide(made, state)
        assert plan(made, decision).violations == ()
        made, state = applied(made, decision), decision.state
    found = {(v.pid // 1000 - 1, v.tid % 1000 - 1): knobs.weight for v, knobs in made.knobs.items()}
    return {who: weight for who, weight in found.items() if weight is not None}


def knowing(*names: str, tids: tuple[int, ...] = ()) -> Oracle:
    return Oracle(OracleParameters(names, tids))


HALF_CRITICAL = period(Group("a", [Row(20, READY), Row(20, READY)]))


def test_the_critical_get_seven_times_the_weight_of_the_others_by_the_sum_of_demand() -> None:
    # equal demand: 7 w + w = 2 × 1024
    assert weights(knowing("a/0"), HALF_CRITICAL) == {(0, 0): 1792, (0, 1): 256}


def test_below_a_group_of_the_workloads_own_it_is_twenty_times_as_far_as_weights_go() -> None:
    # 20 w + w = 2 × 1024, and no weight below an eighth
    nested = period(Group("a", [Row(20, READY), Row(20, READY)], nested=True))
    assert weights(knowing("a/0"), nested) == {(0, 0): 1950, (0, 1): 128}


def test_below_a_group_of_the_workloads_own_it_owes_nothing_when_the_others_pause() -> None:
    policy, owed = knowing("a/0"), []
    for nested in (False, True):
        busy, pause = (period(Group("a", [Row(20, READY), row], nested=nested)) for row in (Row(20), Row(0)))
        raised = policy.decide(busy, policy.initial_state())
        after_it = policy.decide(replace(pause, knobs=applied(busy, raised).knobs), raised.state).state
        assert isinstance(after_it, OracleState)
        owed.append(dict(after_it.owed).get("a", 0))
    assert owed[0] > owed[1] == 0


def test_a_name_may_be_a_beginning_and_a_thread_id_does_as_well() -> None:
    two = period(Group("a", [Row(20)]), Group("b", [Row(20), Row(20)]))
    assert weights(knowing("b/0", "c*"), two) == weights(knowing(tids=(vcpu_id(1, 0).tid,)), two)
    assert weights(knowing("b*"), two) == {(0, 0): 1024, (1, 0): 1024, (1, 1): 1024}


def test_where_nobody_is_critical_or_everybody_nothing_changes() -> None:
    for policy in (knowing("a*"), knowing("z")):
        decision = policy.decide(HALF_CRITICAL, policy.initial_state())
        assert (decision.knobs, decision.reasons, decision.stakes) == ({}, (), {})


def test_a_workload_keeps_its_neutral_weight_over_time() -> None:
    # three compute all the time, one hardly runs and is critical: it cannot lend what it does not use
    made = period(Group("a", [Row(1, READY), *[Row(26, READY)] * 3]))
    found = weights(knowing("a/0"), made, periods=40)
    assert found[0, 0] > 5 * NEUTRAL_WEIGHT
    assert all(abs(found[0, row] - NEUTRAL_WEIGHT) < NEUTRAL_WEIGHT // 4 for row in (1, 2, 3))


def test_who_has_just_come_and_whose_weight_is_not_ours_is_left_alone() -> None:
    rows = [Row(20), Row(20), Row(new=True), Row(20, weight=None)]
    assert weights(knowing("a/0"), period(Group("a", rows))) == {(0, 0): 1792, (0, 1): 256, (0, 2): 1024}


def test_those_who_are_not_critical_may_start_later() -> None:
    policy = knowing("a/0")
    decision = policy.decide(HALF_CRITICAL, policy.initial_state())
    made = applied(HALF_CRITICAL, decision)
    latencies_ns = [made.knobs[vcpu_id(0, row)].rescheduling_latency_ns for row in (0, 1)]
    assert latencies_ns == [4_000_000, 5_000_000]


def test_what_is_right_already_is_not_written_again() -> None:
    policy = knowing("a/0")
    first = policy.decide(HALF_CRITICAL, policy.initial_state())
    assert policy.decide(applied(HALF_CRITICAL, first), first.state).knobs == {}
