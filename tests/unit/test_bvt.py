"""Borrowed virtual time: latency-critical workloads start sooner and get no more."""

from __future__ import annotations

from dataclasses import replace

from dasec.model import Decision, Knob, Knobs, Period, PolicyState, VcpuId
from dasec.plan import plan
from dasec.rivals.bvt import Bvt, BvtParameters

from ..builders import READY, RUNNING, Group, Row, period

WEB = Bvt(BvtParameters(critical=("web*",)))


def latencies(decision: Decision) -> dict[tuple[int, int], int | None]:
    """(workload, row) → latency in µs, of all that the decision changes."""
    return {
        (vcpu.pid // 1000 - 1, vcpu.tid % 1000 - 1): (knobs.rescheduling_latency_ns or 0) // 1000
        for vcpu, knobs in decision.knobs.items()
    }


def applied(made: Period, decision: Decision) -> Period:
    """The same period, with the latencies as decided."""
    changed = {
        vcpu: made.knobs[vcpu]._replace(rescheduling_latency_ns=knobs.rescheduling_latency_ns)
        for vcpu, knobs in decision.knobs.items()
    }
    return replace(made, knobs={**made.knobs, **changed})


def play(policy: Bvt, *tables: Period) -> Decision:
    """The decision after these periods, each under the latencies that those before gave."""
    state, decision, knobs = policy.initial_state(), Decision(), dict[VcpuId, Knobs]()
    for table in tables:
        made = replace(table, knobs={vcpu: knobs.get(vcpu, given) for vcpu, given in table.knobs.items()})
        decision = policy.decide(made, state)
        state, knobs = decision.state, dict(applied(made, decision).knobs)
    return decision


def web(*consumed_ms: float) -> Period:
    """A workload `web` whose vCPUs consumed that."""
    return period(Group("web", [Row(each, READY) for each in consumed_ms]))


def test_only_latency_critical_workloads_are_warped_and_only_their_latency_is_touched() -> None:
    made = period(Group("web-1", [Row(5, READY), Row()]), Group("batch", [Row(40, RUNNING)]))
    decision = play(WEB, made)
    assert latencies(decision) == {(0, 0): 700, (0, 1): 700}
    assert all(knobs.weight is None and knobs.affinity is None for knobs in decision.knobs.values())
    assert {(r.knob, r.rule) for r in decision.reasons} == {(Knob.RESCHEDULING_LATENCY, "bvt.warp")}
    assert len(plan(made, decision).changes) == 2


def test_by_default_everybody_is_critical_as_in_the_paper() -> None:
    made = period(Group("a", [Row(5, READY)]), Group("b", [Row(5, READY)]))
    assert latencies(play(Bvt(), made)) == {(0, 0): 700, (1, 0): 700}


def test_who_is_warped_already_is_left_alone() -> None:
    assert play(WEB, web(5), web(5)).knobs == {}


def test_who_starts_sooner_than_a_warp_keeps_that() -> None:
    assert play(WEB, period(Group("web", [Row(5, READY, latency_us=300)]))).knobs == {}


def test_who_computes_beyond_the_limit_is_not_warped_for_two_periods() -> None:
    assert latencies(play(WEB, web(5), web(41))) == {(0, 0): 4000}
    assert play(WEB, web(5), web(41), web(5)).knobs == {}
    assert latencies(play(WEB, web(5), web(41), web(5), web(5))) == {(0, 0): 700}


def test_a_latency_that_is_not_ours_is_not_wanted() -> None:
    assert play(WEB, period(Group("web", [Row(5, READY, latency_us=None)]))).knobs == {}


def test_a_newcomer_is_warped_at_once_and_who_is_gone_is_forgotten() -> None:
    made = period(Group("web", [Row(new=True), Row(5, READY)]))
    first = play(WEB, made)
    assert latencies(first) == {(0, 0): 700, (0, 1): 700}
    gone = replace(made, knobs={}, usage={})
    assert WEB.decide(gone, first.state).state == WEB.initial_state()


def test_another_policys_state_counts_as_none() -> None:
    assert latencies(WEB.decide(web(5), PolicyState())) == {(0, 0): 700}
