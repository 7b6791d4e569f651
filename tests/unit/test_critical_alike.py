"""Those that give way on the same CPUs: none of them loses time to another one, and each to who does not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dasec.critical.alike import STEPS, Weighing, align
from dasec.critical.late import Claimant, behind_ns
from dasec.critical.scores import FULL
from dasec.critical.weights import Claims
from dasec.model import Core

from ..builders import MS, vcpu_id

TWO = frozenset({Core(0), Core(1)})
OTHERS = frozenset({Core(2)})
PERIOD_NS = 80 * MS
NEUTRAL, LOWERED = 1024, 146


def hog(home: str, run_ms: float, weight: int = LOWERED, wants_ms: float = 80.0) -> Claimant:
    return Claimant(home, weight, NEUTRAL, round(run_ms * MS), round((wants_ms - run_ms) * MS))


def behind_ms(*claimants: Claimant) -> dict[str, float]:
    return {home: ns / MS for home, ns in behind_ns(PERIOD_NS, {TWO: claimants}).items()}


@given(st.lists(st.integers(1, 100), min_size=3, max_size=3), st.sampled_from(STEPS))
def test_nobody_is_behind_where_all_give_way_alike_however_long_each_was_alone(
    alone: list[int], part: int
) -> None:
    weight = NEUTRAL * part // FULL
    ran_ms = [80 * (1 + each / sum(alone)) / 2 for each in alone]  # the other two share the other CPU
    found = behind_ms(*(hog(f"vm{at}", run_ms, weight) for at, run_ms in enumerate(ran_ms)))
    assert all(ms <= 0.05 for ms in found.values()), found


def test_two_on_one_cpu_and_one_alone_is_how_three_share_two_cpus() -> None:
    assert behind_ms(hog("a", 80), hog("b", 40), hog("c", 40)) == pytest.approx(
        {"a": 0, "b": 0, "c": 0}, abs=0.05
    )


def test_who_gives_way_beside_one_that_does_not_is_behind() -> None:
    found = behind_ms(hog("gives", 10), hog("takes", 70, NEUTRAL))
    assert found["gives"] == pytest.approx(30, abs=0.5)
    assert found["takes"] == pytest.approx(0, abs=1e-3)


def test_who_gives_way_beside_one_that_nobody_manages_is_behind() -> None:
    assert behind_ms(hog("gives", 10))["gives"] == pytest.approx(30, abs=0.5)


def test_what_one_met_is_no_more_of_those_who_give_way_than_there_are() -> None:
    """It ran for 12 of 80 ms beside one that gives way, too, and one of neutral weight that wants 70 %."""
    assert behind_ms(hog("gives", 12), hog("too", 12), hog("serves", 56, NEUTRAL, 56))["gives"] > 8


def test_one_that_slept_for_a_moment_gave_way_like_the_others() -> None:
    found = behind_ms(hog("a", 80), hog("b", 40), hog("c", 32, wants_ms=72))
    assert found == pytest.approx({"a": 0, "b": 0}, abs=0.05)


def wish(home: int, *wanted: int, scores: tuple[int, ...], at: frozenset[Core] = TWO) -> Weighing:
    ids = [vcpu_id(home, row) for row in range(len(wanted))]
    claims = Claims([NEUTRAL] * len(ids), [PERIOD_NS] * len(ids), scores)
    return Weighing(ids, claims, list(wanted), 20, {ids[-1]: at})


def test_all_that_give_way_weigh_as_much_as_the_one_that_gives_way_least() -> None:
    wishes = [wish(0, NEUTRAL, 146, scores=(FULL, 0)), wish(1, NEUTRAL, 250, scores=(550, 0))]
    align(wishes)
    part = min(step for step in STEPS if step >= 250 * FULL // NEUTRAL)
    assert [one.wanted for one in wishes] == [[NEUTRAL, NEUTRAL * part // FULL]] * 2
    assert [one.exact for one in wishes] == [{1}] * 2


def test_who_runs_elsewhere_or_is_waited_for_is_none_of_them() -> None:
    elsewhere = wish(1, NEUTRAL, 700, scores=(FULL, 0), at=OTHERS)
    waited_for = wish(2, NEUTRAL, 900, scores=(FULL, 600))
    lowered = wish(0, NEUTRAL, 146, scores=(FULL, 0))
    align([lowered, elsewhere, waited_for])
    assert lowered.wanted == [NEUTRAL, NEUTRAL * STEPS[0] // FULL]
    assert waited_for.wanted == [NEUTRAL, 900]
