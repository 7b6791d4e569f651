"""Back to the knobs before the policy, as far as they are still allowed."""

from __future__ import annotations

from dasec.guard.switch import WITHOUT, followed, noted, towards
from dasec.model import Knobs, PolicyState

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
