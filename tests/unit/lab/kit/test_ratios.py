"""Planted effects are found, noise is not, and the interval covers the truth."""

from __future__ import annotations

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dasec.lab.kit import ratios
from dasec.lab.kit.ratios import (
    Effect,
    Estimate,
    control_spread,
    estimate,
    geometric_mean,
    overall,
    paired_ratios,
    pooled_ratios,
    verdict,
)

SIMULATIONS = 300
NOISE = 0.1
"""As a logarithm: about what A/A runs of a mean show (docs/measurements.md)."""


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ratios, "RESAMPLES", 999)


def simulated(
    chance: numpy.random.Generator, repetitions: int, effect: float = 1.0
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Ratios of a policy and of the control, both to the same noisy default."""
    default, control, policy = numpy.exp(chance.normal(0, NOISE, (3, repetitions)))
    return tuple(effect * policy / default), tuple(control / default)


def judge(policy: tuple[float, ...], control: tuple[float, ...]) -> Effect:
    return verdict(estimate(policy), len(policy), control_spread(control))


@pytest.mark.parametrize(
    ("planted", "expected"),
    [(1.0, Effect.NO_EFFECT), (0.5, Effect.GAIN), (1.5, Effect.HARM)],
)
def test_a_planted_ratio_beside_a_quiet_control_gets_its_verdict(planted: float, expected: Effect) -> None:
    policy = tuple(planted * noise for noise in (0.98, 1.02, 1.0, 1.01, 0.99))
    control = (1.03, 0.97, 1.0, 0.99, 1.02)
    assert judge(policy, control) is expected


def test_a_workload_that_did_nothing_has_a_ratio_and_a_mean() -> None:
    ratios = paired_ratios((0.0, 0.0, 200.0), (100.0, 0.0, 0.0))
    assert ratios == pytest.approx((1e-5, 1.0, 2e5))
    assert geometric_mean(ratios) > 0


def test_identical_runs_are_no_effect() -> None:
    ratios = paired_ratios((3.0, 4.0, 5.0, 6.0), (3.0, 4.0, 5.0, 6.0))
    assert judge(ratios, ratios) is Effect.NO_EFFECT
    assert estimate(ratios) == Estimate(1.0, 1.0, 1.0)


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("repetitions", [ratios.MINIMUM_REPETITIONS, 5, 10])
def test_noise_alone_is_no_effect_in_at_least_95_of_100_demos(repetitions: int) -> None:
    chance = numpy.random.default_rng(repetitions)
    verdicts = [judge(*simulated(chance, repetitions)) for _ in range(SIMULATIONS)]
    assert verdicts.count(Effect.NO_EFFECT) >= 0.95 * SIMULATIONS


@pytest.mark.usefixtures("quick")
def test_a_halved_latency_is_found_through_the_noise() -> None:
    chance = numpy.random.default_rng(2)
    verdicts = [judge(*simulated(chance, 5, effect=0.5)) for _ in range(SIMULATIONS)]
    assert verdicts.count(Effect.GAIN) >= 0.95 * SIMULATIONS


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("repetitions", [5, 10, 20])
def test_the_interval_covers_the_truth_about_as_often_as_it_says(repetitions: int) -> None:
    chance = numpy.random.default_rng(repetitions)
    covered = 0
    for _ in range(SIMULATIONS):
        found = estimate(simulated(chance, repetitions, effect=0.8)[0])
        covered += found.low <= 0.8 <= found.high
    assert 0.88 <= covered / SIMULATIONS <= 0.99  # 0.92, 0.94 and 0.95 over many simulations


def test_a_large_effect_that_a_wild_control_covers_is_no_effect() -> None:
    assert judge((0.7, 0.71, 0.69, 0.7, 0.7), (1.5, 1.0, 1.0, 1.0, 1.0)) is Effect.NO_EFFECT


def test_with_few_repetitions_there_is_no_verdict_however_large_the_effect() -> None:
    few = ratios.MINIMUM_REPETITIONS - 1
    assert judge((0.1,) * few, (1.0,) * few) is Effect.UNDECIDED


@pytest.mark.parametrize("count", range(1, ratios.MINIMUM_REPETITIONS))
def test_few_repetitions_have_no_interval(count: int) -> None:
    assert estimate((0.5,) * count) == Estimate(0.5, 0.0, float("inf"))


def test_the_same_ratios_give_the_same_interval() -> None:
    ratios = (0.9, 1.1, 1.0, 1.05, 0.97)
    assert estimate(ratios) == estimate(ratios)


def test_every_workload_has_one_voice_in_the_pool() -> None:
    assert pooled_ratios([(0.5, 1.0), (2.0, 4.0)]) == pytest.approx((1.0, 2.0))


@given(st.lists(st.floats(0.01, 100), min_size=1, max_size=20))
def test_slower_and_as_much_faster_cancel(ratios: list[float]) -> None:
    assert geometric_mean([*ratios, *(1 / ratio for ratio in ratios)]) == pytest.approx(1.0)


@given(st.lists(st.floats(0.01, 100), min_size=1, max_size=20))
def test_the_control_spread_counts_both_directions_alike(ratios: list[float]) -> None:
    assert control_spread(ratios) == pytest.approx(control_spread([1 / ratio for ratio in ratios]))
    assert control_spread(ratios) >= 1


def test_harm_in_one_metric_is_harm_and_a_gain_needs_no_harm() -> None:
    assert overall([Effect.GAIN, Effect.HARM]) is Effect.HARM
    assert overall([Effect.GAIN, Effect.NO_EFFECT]) is Effect.GAIN
    assert overall([Effect.NO_EFFECT, Effect.NO_EFFECT]) is Effect.NO_EFFECT
    assert overall([Effect.UNDECIDED, Effect.UNDECIDED]) is Effect.UNDECIDED
