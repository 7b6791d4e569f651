"""The demo's interval covers the truth as often as it says, also where some repetitions stall."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dasec.lab.kit.ratios import FEWEST, robust, typical

DEMOS = 4000


def repetitions(chance: random.Random, truth: float, count: int, stalls: float) -> list[float]:
    """Ratios with noise of 15 %; a stall is as likely in the policy's run as in the plain one."""
    return [
        truth
        * math.exp(chance.gauss(0, 0.15))
        * (5 ** chance.choice((-1, 1)) if chance.random() < stalls else 1)
        for _ in range(count)
    ]


@pytest.mark.parametrize("count", [6, 8, 12])
@pytest.mark.parametrize("stalls", [0.0, 0.1])
def test_the_interval_covers_the_truth_as_often_as_it_says(count: int, stalls: float) -> None:
    chance = random.Random(1)
    covered = 0
    for _ in range(DEMOS):
        found = robust(repetitions(chance, 0.7, count, stalls))
        covered += found.low <= 0.7 <= found.high
    assert covered / DEMOS >= 0.945


def test_two_stalls_in_eight_hardly_move_the_estimate() -> None:
    calm = [0.5, 0.52, 0.48, 0.51, 0.49, 0.5]
    assert robust([*calm, 5.0, 4.0]).ratio == pytest.approx(robust(calm).ratio, rel=0.1)


def test_twelve_repetitions_bear_one_that_stalls_however_long() -> None:
    assert robust([0.5, 0.6, 0.45, 0.55, 0.5, 0.6, 0.4, 0.52, 0.48, 0.5, 0.55, 50.0]).high < 0.7


def test_too_few_repetitions_tell_nothing() -> None:
    found = robust([0.5] * (FEWEST - 1))
    assert (found.low, found.high) == (0.0, math.inf)


@given(st.lists(st.floats(0.1, 10), min_size=FEWEST, max_size=12), st.floats(0.1, 10))
def test_what_all_ratios_are_multiplied_by_multiplies_the_estimate(
    ratios: list[float], factor: float
) -> None:
    one, other = robust(ratios), robust([ratio * factor for ratio in ratios])
    for before, after in zip(
        (one.ratio, one.low, one.high), (other.ratio, other.low, other.high), strict=True
    ):
        assert after == pytest.approx(before * factor)
    assert one.low <= one.ratio <= one.high


def test_of_the_workloads_in_a_repetition_the_middle_one_counts() -> None:
    assert typical([[1.0, 9.0], [2.0, 1.0], [50.0, 1.1]]) == pytest.approx((2.0, 1.1))
