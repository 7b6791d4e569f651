"""Back to the knobs before the policy, as far as they are still allowed."""

from __future__ import annotations

import pytest

from dasec.guard.switch import WITH, WITHOUT, fitting, followed, noted, towards
from dasec.model import Change, Knobs, Period, PolicyState
from dasec.plan import plan

from ...builders import Group, Row, core_set, period, vcpu_id

PINNED = vcpu_id(0, 0)
PRIOR = ((PINNED, Knobs(None, None, core_set(0, 1))),)


def undone(allowed: tuple[int, ...], pin: int) -> frozenset[int] | None:
    made = period(Group("a", [Row(20, allowed=allowed, pin=pin, core=pin)]), cores=4)
    decision = towards(made, PRIOR, dict(PRIOR), WITHOUT, PolicyState())
    wish = decision.knobs.get(PINNED)
    return wish and wish.affinity


def test_a_mask_goes_back_to_what_it_was() -> None:
    assert undone((0, 1, 2, 3), pin=3) == core_set(0, 1)


def test_cores_that_were_taken_away_meanwhile_stay_away() -> None:
    assert undone((1, 2), pin=2) == core_set(1)


def test_a_vcpu_that_may_use_none_of_its_old_cores_stays_where_it_is() -> None:
    assert undone((2, 3), pin=2) is None


def test_what_a_knob_was_is_noted_anew_once_it_was_somebody_elses() -> None:
    before = period(Group("a", [Row(20, weight=1024, latency_us=3)]))
    theirs = period(Group("a", [Row(20, weight=None, latency_us=3)]))
    after = period(Group("a", [Row(20, weight=4096, latency_us=3)]))
    wish = {PINNED: Knobs(500, 9000, None)}
    prior = noted((), wish, before)
    assert followed(prior, before) is prior
    prior = followed(prior, theirs)
    assert prior == ((PINNED, Knobs(None, 3000, None)),)
    assert noted(prior, wish, after) == ((PINNED, Knobs(4096, 3000, None)),)


THREE = [Row(20), Row(20), Row(20)]
DIVIDED = tuple((vcpu_id(0, row), Knobs(weight, None, None)) for row, weight in enumerate([2304, 384, 384]))
EVEN = tuple((vcpu, Knobs(1024, None, None)) for vcpu, _ in DIVIDED)


def given_back(made: Period) -> tuple[Change, ...]:
    decision = towards(made, EVEN, fitting(DIVIDED, EVEN, made), WITH, PolicyState())
    planned = plan(made, decision)
    assert planned.violations == ()
    return planned.changes


def test_weights_come_back_as_they_were_divided() -> None:
    assert [change.new for change in given_back(period(Group("a", THREE)))] == [384, 384, 2304]


@pytest.mark.parametrize(
    "left",
    [
        pytest.param(THREE[:1], id="the others have gone"),
        pytest.param([Row(20, weight=None), *THREE[1:]], id="the first one's is somebody else's"),
    ],
)
def test_weights_that_were_divided_among_others_do_not_come_back(left: list[Row]) -> None:
    assert given_back(period(Group("a", left), Group("b", [Row(20)]))) == ()
