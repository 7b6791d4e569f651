"""The policies to compare with: `none` touches nothing, `static` deals the cores once."""

from __future__ import annotations

from dataclasses import replace

from dasec.model import Core, Decision, Knob, Period, PolicyState
from dasec.plan import plan
from dasec.rivals.none import Untouched
from dasec.rivals.static import Pinned, StaticPinning

from ..builders import READY, Group, Row, core_set, period, vcpu_id


def dealt(decision: Decision) -> dict[tuple[int, int], int]:
    """(workload, row) → core, of all that the decision pins."""
    return {
        (vcpu.pid // 1000 - 1, vcpu.tid % 1000 - 1): core
        for vcpu, knobs in decision.knobs.items()
        for core in knobs.affinity or ()
    }


def arrived(made: Period, decision: Decision) -> Period:
    """The same period, with everybody pinned as decided."""
    return replace(
        made,
        knobs={
            **made.knobs,
            **{v: made.knobs[v]._replace(affinity=k.affinity) for v, k in decision.knobs.items()},
        },
    )


def test_none_never_changes_anything() -> None:
    policy = Untouched()
    busy = period(Group("a", [Row(80, READY, conflicts=99), Row()]))
    assert policy.decide(busy, policy.initial_state()) == Decision(state=PolicyState())


def test_static_deals_the_cores_in_turn_workload_by_workload() -> None:
    # cores 0 1 2: a takes 0 1, b goes on with 2 0 1 2
    made = period(Group("a", [Row()] * 2), Group("b", [Row()] * 4), cores=3)
    decision = StaticPinning().decide(made, Pinned())
    assert dealt(decision) == {(0, 0): 0, (0, 1): 1, (1, 0): 2, (1, 1): 0, (1, 2): 1, (1, 3): 2}
    assert {(reason.knob, reason.rule) for reason in decision.reasons} == {(Knob.AFFINITY, "static.pin")}
    assert len(plan(made, decision).changes) == 6


def test_static_gives_the_next_core_that_a_vcpu_may_use_and_goes_on_from_there() -> None:
    # row 0 is dealt 2, and is nowhere else anyway. Then 0, 1; row 3 may use 0 and 1: it is 2's turn, so 0
    rows = [Row(allowed=[2]), Row(), Row(), Row(allowed=[0, 1])]
    assert dealt(StaticPinning().decide(period(Group("a", rows), cores=3), Pinned())) == {
        (0, 1): 0,
        (0, 2): 1,
        (0, 3): 0,
    }


def test_static_leaves_alone_whom_it_cannot_pin() -> None:
    rows = [Row(allowed=[7]), Row(movable=False), Row()]
    made = period(Group("a", rows), cores=2)
    # row 1 has been dealt core 0, but cannot be pinned; row 2 gets core 1
    assert dealt(StaticPinning().decide(made, Pinned())) == {(0, 2): 1}


def test_static_keeps_everybody_where_they_are_and_gives_newcomers_the_next_core() -> None:
    policy = StaticPinning()
    early = period(Group("a", [Row()] * 2), Group("b", [Row()]), cores=2)
    first = policy.decide(early, policy.initial_state())
    assert dealt(first) == {(0, 0): 0, (0, 1): 1, (1, 0): 0}
    later = period(Group("a", [Row()] * 3), Group("b", [Row()]), cores=2)
    knobs = {vcpu: arrived(early, first).knobs.get(vcpu, later.knobs[vcpu]) for vcpu in later.knobs}
    second = policy.decide(replace(later, knobs=knobs), first.state)
    assert dealt(second) == {(0, 2): 1}


def test_static_puts_back_who_was_moved_by_others() -> None:
    policy = StaticPinning()
    made = period(Group("a", [Row()] * 2), cores=2)
    first = policy.decide(made, policy.initial_state())
    still = arrived(made, first)
    assert policy.decide(still, first.state).knobs == {}
    moved = {**still.knobs, vcpu_id(0, 0): still.knobs[vcpu_id(0, 0)]._replace(affinity=core_set(0, 1))}
    assert dealt(policy.decide(replace(still, knobs=moved), first.state)) == {(0, 0): 0}


def test_static_gives_another_core_to_whom_its_own_was_taken_from_by_a_mask_or_as_it_went() -> None:
    policy = StaticPinning()
    made = period(Group("a", [Row()] * 3), cores=3)
    first = policy.decide(made, policy.initial_state())
    confined = period(Group("a", [Row(allowed=[1]), Row(pin=1), Row(pin=2)]), cores=3)
    later = replace(confined, topology=confined.topology.without(Core(2)))
    second = policy.decide(later, first.state)
    assert plan(later, second).violations == ()
    # row 0 is on core 1 alone anyway; row 2 is next: it is core 1's turn, then 0's
    assert dealt(second) == {(0, 2): 0}
    assert policy.decide(arrived(later, second), second.state).knobs == {}


def test_static_forgets_who_is_gone() -> None:
    policy = StaticPinning()
    made = period(Group("a", [Row()] * 2), cores=2)
    gone = replace(made, knobs={vcpu_id(0, 1): made.knobs[vcpu_id(0, 1)]})
    state = policy.decide(gone, policy.decide(made, policy.initial_state()).state).state
    assert state == Pinned(((vcpu_id(0, 1), made.topology.cores[1]),), 2)
