"""PARTIES: whole cores go to the workload that waits most, and come back if that did not help."""

from __future__ import annotations

from collections.abc import Mapping

from dasec.model import Decision, Knob, Period, PolicyState
from dasec.plan import plan
from dasec.rivals.parties import PATIENCE, Parties, PartiesState

from ..builders import READY, Group, Row, core_set, period

SECOND_MS = 1000  # longer than an interval: each of these periods is judged
CALM, SPARE, NEEDY = 1, 15, 60
"""Waited so many percent of its runnable time: slack 95 %, 25 % and -200 % of the target of 20 %."""


def waiting(percents: Mapping[str, float], cores: int = 2, length_ms: float = SECOND_MS) -> Period:
    """Workloads of two vCPUs that waited these parts of their runnable time."""
    rows = {name: Row(100 - waited, READY, ready_ms=waited) for name, waited in percents.items()}
    return period(*(Group(name, [row, row]) for name, row in rows.items()), cores=cores, length_ms=length_ms)


def play(*tables: Period) -> PartiesState:
    """What it remembers after these periods."""
    policy = Parties()
    state: PolicyState = policy.initial_state()
    for table in tables:
        state = policy.decide(table, state).state
    assert isinstance(state, PartiesState)
    return state


def held(*tables: Period) -> dict[str, set[int]]:
    """Who holds which cores after these periods."""
    return {name: {int(core) for core in cores} for name, cores in play(*tables).held}


def test_cores_are_dealt_in_equal_parts_and_every_vcpu_may_use_its_workloads() -> None:
    made = waiting({"a": CALM, "b": CALM}, cores=4)
    decision: Decision = Parties().decide(made, PartiesState())
    assert sorted(tuple(sorted(knobs.affinity or ())) for knobs in decision.knobs.values()) == [
        (0, 1),
        (0, 1),
        (2, 3),
        (2, 3),
    ]
    assert {(reason.knob, reason.rule) for reason in decision.reasons} == {(Knob.AFFINITY, "parties.hold")}
    assert plan(made, decision).violations == ()


def test_with_more_workloads_than_cores_each_shares_one() -> None:
    assert held(waiting({"a": CALM, "b": CALM, "c": CALM})) == {"a": {0}, "b": {1}, "c": {0}}


def test_who_waits_too_long_gets_a_core_from_who_waits_least() -> None:
    percents = {"a": NEEDY, "b": SPARE, "c": CALM}
    assert held(waiting(percents, cores=6)) == {"a": {0, 1, 5}, "b": {2, 3}, "c": {4}}


def test_nobody_gives_the_last_core_and_nobody_without_slack_gives() -> None:
    assert held(waiting({"a": NEEDY, "b": CALM})) == {"a": {0}, "b": {1}}
    assert held(waiting({"a": NEEDY, "b": 17}, cores=4)) == {"a": {0, 1}, "b": {2, 3}}


def test_between_little_and_much_slack_nothing_is_moved() -> None:
    assert play(waiting({"a": 18, "b": CALM}, cores=4)).transfers == 0


def test_a_transfer_that_helped_stays() -> None:
    before, better = {"a": NEEDY, "b": CALM}, {"a": SPARE, "b": CALM}
    assert held(waiting(before, 4), waiting(better, 4)) == {"a": {0, 1, 3}, "b": {2}}


def test_a_transfer_that_did_not_help_is_taken_back_and_not_tried_again_for_a_while() -> None:
    same = waiting({"a": NEEDY, "b": CALM}, 4)
    assert held(same, same) == {"a": {0, 1}, "b": {2, 3}}
    assert play(*[same] * (PATIENCE + 1)).transfers == 2
    assert play(*[same] * (PATIENCE + 2)).transfers == 3


def test_a_giver_in_need_gets_its_core_back() -> None:
    before, worse = waiting({"a": NEEDY, "b": CALM}, 4), waiting({"a": CALM, "b": NEEDY}, 4)
    assert held(before, worse) == {"a": {0, 1}, "b": {2, 3}}


def test_who_shares_a_core_and_waits_goes_where_all_can_bear_it() -> None:
    crowded = waiting({"a": NEEDY, "b": CALM, "c": SPARE})
    assert held(crowded) == {"a": {1}, "b": {1}, "c": {0}}
    assert held(crowded, crowded) == {"a": {0}, "b": {1}, "c": {0}}


def test_waits_are_judged_over_half_a_second() -> None:
    short = waiting({"a": NEEDY, "b": CALM}, cores=4, length_ms=80)
    assert play(*[short] * 6).transfers == 0
    assert play(*[short] * 7).transfers == 1


def test_a_workload_that_comes_deals_anew() -> None:
    needy, three = waiting({"a": NEEDY, "b": CALM}, 4), waiting({"a": SPARE, "b": SPARE, "c": SPARE}, 4)
    assert held(needy, three) == {"a": {0}, "b": {1}, "c": {2, 3}}


def test_a_vcpu_that_may_use_none_of_its_workloads_cores_is_left_where_it_may_run() -> None:
    rows = [Row(allowed=[1], pin=1), Row(movable=False)]
    made = period(Group("a", rows), Group("b", [Row()]), cores=2)
    decision = Parties().decide(made, PartiesState())
    assert [knobs.affinity for knobs in decision.knobs.values()] == [core_set(1)]  # only b's
