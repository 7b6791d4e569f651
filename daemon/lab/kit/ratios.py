"""From paired repetitions to a ratio, an interval and a verdict. Pure.

Every value of a policy is divided by the default's value of the same repetition, which had the
same arrivals and ran within a minute or so, so that what drifts slowly cancels. Ratios are
averaged as logarithms: twice as slow and half as slow then weigh the same.

`robust` bears a few long stalls: of the ratios of all workloads in one repetition the median counts, so that
one that stalled has no say. Over the repetitions: the Hodges-Lehmann estimate, the median of the means of all
pairs (of logarithms), and the interval that belongs to Wilcoxon's signed-rank test, which supposes no more
than symmetry (Hollander, Wolfe and Chicken, Nonparametric Statistical Methods, 3.2 and 3.3). With eight
repetitions it covers the truth 96 times in 100, and as often where every tenth repetition stalls fivefold
(tests/unit/lab/kit/test_robust.py). `estimate` is the geometric mean with its bootstrap interval, for counted
guests, where nothing stalls.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from statistics import median

CONFIDENCE = 0.95
RESAMPLES = 9999

MINIMUM_REPETITIONS = 4
"""With fewer, noise alone exceeds an equally short A/A control in more than 1 of 20 demos
(tests/unit/lab/kit/test_ratios.py simulates it)."""


class Effect(StrEnum):
    """What a comparison showed."""

    GAIN = "gain"
    NO_EFFECT = "no effect"
    HARM = "harm"
    UNDECIDED = "too few repetitions"


@dataclass(frozen=True, slots=True)
class Estimate:
    """A geometric mean of ratios and its confidence interval."""

    ratio: float
    low: float
    high: float


LEAST = 1e-3
"""What nothing counts as, so that there is a ratio: on an overloaded machine a workload may answer no request
in the measured part. In requests a second, or cores; latencies are in ns and far above."""


def paired_ratios(values: Sequence[float], baseline: Sequence[float]) -> tuple[float, ...]:
    """Value over baseline, repetition by repetition."""
    return tuple(max(value, LEAST) / max(base, LEAST) for value, base in zip(values, baseline, strict=True))


def geometric_mean(ratios: Sequence[float]) -> float:
    """The mean of ratios."""
    return math.exp(math.fsum(map(math.log, ratios)) / len(ratios))


def pooled_ratios(by_workload: Sequence[Sequence[float]]) -> tuple[float, ...]:
    """One ratio a repetition, in which every workload has the same voice, however many requests it had."""
    return tuple(geometric_mean(ratios) for ratios in zip(*by_workload, strict=True))


def estimate(ratios: Sequence[float], seed: int = 0) -> Estimate:
    """Geometric mean with its bootstrap confidence interval; without end where there are too few: that of two
    is from one to the other, and covers the truth half of the time."""
    import numpy  # `dasec classify` uses the rest of this file, and does without
    from scipy import stats

    logs = numpy.log(numpy.asarray(ratios, dtype=float))
    centre = float(logs.mean())
    if len(ratios) < MINIMUM_REPETITIONS:
        return Estimate(math.exp(centre), 0.0, math.inf)
    if float(numpy.ptp(logs)) == 0.0:
        return Estimate(math.exp(centre), math.exp(centre), math.exp(centre))
    interval = stats.bootstrap(
        (logs,),
        numpy.mean,
        confidence_level=expanded_confidence(len(ratios)),
        n_resamples=RESAMPLES,
        method="percentile",
        rng=numpy.random.default_rng(seed),
    ).confidence_interval
    return Estimate(math.exp(centre), math.exp(float(interval.low)), math.exp(float(interval.high)))


def expanded_confidence(count: int) -> float:
    """The percentile interval of n values is too narrow by about sqrt((n - 1) / n) and by the
    normal quantile in place of Student's; a handful of repetitions needs both put right
    (Hesterberg, The American Statistician 69(4), 2015: expanded percentile interval). In simulation
    it then covers the truth 92 times in 100 with five repetitions, 94 with ten (test_ratios.py)."""
    from scipy import stats

    student = float(stats.t.ppf((1 + CONFIDENCE) / 2, count - 1))
    tail = float(stats.norm.cdf(-math.sqrt(count / (count - 1)) * student))
    return 1 - 2 * tail


def control_spread(control: Sequence[float]) -> float:
    """How far, as a factor ≥ 1, the default was from itself in the worst A/A repetition."""
    return math.exp(max(abs(math.log(ratio)) for ratio in control))


def verdict(effect: Estimate, repetitions: int, spread: float) -> Effect:
    """Below 1 is better. Only what the confidence interval and the A/A spread both leave over counts."""
    if repetitions < MINIMUM_REPETITIONS:
        return Effect.UNDECIDED
    if abs(math.log(effect.ratio)) <= math.log(spread):
        return Effect.NO_EFFECT
    if effect.high < 1:
        return Effect.GAIN
    if effect.low > 1:
        return Effect.HARM
    return Effect.NO_EFFECT


LITTLE_WORK = 0.9
"""Of the plain host's background work: with less the latency was bought."""


def overall(verdicts: Sequence[Effect]) -> Effect:
    """Harm in anything is harm; a gain needs one gain and no harm."""
    for found in (Effect.UNDECIDED, Effect.HARM, Effect.GAIN):
        if found in verdicts:
            return found
    return Effect.NO_EFFECT


FEWEST = 6
"""Repetitions: with fewer no such interval of 95 % exists."""


def typical(by_workload: Sequence[Sequence[float]]) -> tuple[float, ...]:
    """One ratio a repetition: the median workload's."""
    return tuple(math.exp(median(map(math.log, ratios))) for ratios in zip(*by_workload, strict=True))


def robust(ratios: Sequence[float]) -> Estimate:
    """The Hodges-Lehmann estimate of the ratio, and its interval; without end where there are too few."""
    logs = [math.log(ratio) for ratio in ratios]
    means = sorted((one + other) / 2 for at, one in enumerate(logs) for other in logs[at:])
    centre = math.exp(median(means))
    if len(logs) < FEWEST:
        return Estimate(centre, 0.0, math.inf)
    left_out = _left_out(len(logs))
    return Estimate(centre, math.exp(means[left_out]), math.exp(means[-1 - left_out]))


@cache
def _left_out(count: int) -> int:
    """How many of the means of pairs lie outside the interval at either end."""
    ways = [1]  # how many subsets of the ranks 1 to count have each sum
    for rank in range(1, count + 1):
        longer = [0] * (len(ways) + rank)
        for total, number in enumerate(ways):
            longer[total] += number
            longer[total + rank] += number
        ways = longer
    tail, left_out = 0, 0
    for number in ways:
        tail += number
        if 2 * tail > (1 - CONFIDENCE) * 2**count:
            break
        left_out += 1
    return left_out - 1
