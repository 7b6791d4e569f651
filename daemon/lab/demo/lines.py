"""What each situation showed: one line for each policy, with the plain host beside itself (A/A). Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import fmean, median

from ..kit.arms import CONTROL, NONE
from ..kit.ratios import FEWEST, LITTLE_WORK, Estimate, paired_ratios, pooled_ratios, robust, typical
from ..kit.results import Measured

JUDGED = ("mean", "p99")
"""The two figures of the paper's claim (§5)."""

NOISE = 1.5
"""An interval that reaches further than this factor hides a gain by a third, which is worth having."""


class Answer(StrEnum):
    """What a line says."""

    GAIN = "gain"
    NOTHING = "no effect"
    HARM = "harm"
    UNTOLD = "cannot tell"


@dataclass(frozen=True, slots=True)
class Line:
    """One policy in one situation: ratios to the plain host of mean and p99, with the plain host's second
    runs beside them (A/A); how long requests took, in ms; the background's cores, of the plain host's."""

    situation: str
    policy: str
    effect: tuple[Estimate, ...]
    noise: tuple[Estimate, ...]
    repetitions: tuple[tuple[float, ...], ...]
    plain_ms: tuple[float, ...]
    policy_ms: tuple[float, ...]
    background: float
    busy: float
    daemon_percent: float
    failed: int = 0
    """Requests of its own runs and the plain host's, all of which count as late."""

    @property
    def answer(self) -> Answer:
        """An effect is what its interval and the plain host's own spread both leave over. A gain in mean or
        p99 counts if the other is not above 1, and no request failed; harm in one is harm."""
        if self.is_short:
            return Answer.UNTOLD
        both = [(one, spread(noise)) for one, noise in zip(self.effect, self.noise, strict=True)]
        if any(one.low > 1 and one.ratio > unlike for one, unlike in both):
            return Answer.HARM
        if self.failed:
            return Answer.UNTOLD
        better = any(one.high < 1 and one.ratio < 1 / unlike for one, unlike in both)
        if better and all(one.ratio < 1 for one in self.effect):
            return Answer.GAIN if self.background >= LITTLE_WORK else Answer.HARM
        return Answer.UNTOLD if any(map(is_wide, (*self.noise, *self.effect))) else Answer.NOTHING

    @property
    def is_short(self) -> bool:
        """Were there too few repetitions?"""
        return len(self.repetitions[0]) < FEWEST


def spread(noise: Estimate) -> float:
    """How unlike itself the plain host may be, as a factor: which of its runs came first is chance, so what
    they differ by counts in both directions."""
    return max(noise.high, 1 / noise.low)


def is_wide(one: Estimate) -> bool:
    """Does it leave open too much? Of A/A: was the plain host too unlike itself to say that nothing is?"""
    return one.high > NOISE or one.low < 1 / NOISE


def lines_of(situation: str, measured: Measured) -> tuple[Line, ...]:
    """A line for each policy."""
    noise = [_ratios(measured, CONTROL, (NONE,), metric) for metric in JUDGED]
    return tuple(
        _line(situation, measured, arm, [robust(each) for each in noise])
        for arm in measured.arms
        if arm not in (NONE, CONTROL)
    )


def so_far(measured: Measured) -> dict[str, float]:
    """The mean of each policy, of the plain host's: of the repetitions that are over the middle one."""
    return {
        arm: median(_ratios(measured, arm, (NONE, CONTROL), "mean"))
        for arm in measured.arms
        if arm not in (NONE, CONTROL)
    }


def _line(situation: str, measured: Measured, arm: str, noise: Sequence[Estimate]) -> Line:
    ratios = tuple(_ratios(measured, arm, (NONE, CONTROL), metric) for metric in JUDGED)
    return Line(
        situation,
        arm,
        tuple(map(robust, ratios)),
        tuple(noise),
        ratios,
        tuple(_milliseconds(measured, NONE, metric) for metric in JUDGED),
        tuple(_milliseconds(measured, arm, metric) for metric in JUDGED),
        _background(measured, arm),
        fmean(run.busy for run in measured.of(NONE)),
        100 * fmean(run.daemon_cpu_s / run.seconds for run in measured.of(arm)),
        sum(one.errors for each in (arm, NONE, CONTROL) for run in measured.of(each) for one in run.tenants),
    )


def _ratios(measured: Measured, arm: str, plain: Sequence[str], metric: str) -> tuple[float, ...]:
    """The median workload's, repetition by repetition; to the geometric mean of the plain runs."""
    by_workload = []
    for tenant in measured.tenants:
        own = measured.values(arm, tenant, metric)
        bases = [paired_ratios(own, measured.values(one, tenant, metric)) for one in plain]
        by_workload.append(pooled_ratios(bases))
    return typical(by_workload)


def _milliseconds(measured: Measured, arm: str, metric: str) -> float:
    """The typical workload's in the typical run."""
    return median(median(measured.values(arm, tenant, metric)) for tenant in measured.tenants) / 1e6


def _background(measured: Measured, arm: str) -> float:
    """The work of threads that no request waits for, of the plain host's."""
    done = {
        each: sum(one.background_cores for run in measured.of(each) for one in run.tenants)
        for each in (arm, NONE)
    }
    return done[arm] / done[NONE] if done[NONE] > 0 else 1.0
