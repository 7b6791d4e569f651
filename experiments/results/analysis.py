"""From finished blocks to ratios, shares of the oracle's gain and verdicts; nothing here measures."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy

from dasec.lab.kit.arms import CONTROL, NONE
from dasec.lab.kit.ratios import (
    LITTLE_WORK,
    MINIMUM_REPETITIONS,
    RESAMPLES,
    Effect,
    Estimate,
    control_spread,
    estimate,
    expanded_confidence,
    geometric_mean,
    overall,
    paired_ratios,
    verdict,
)
from dasec.lab.kit.results import RunResult, TenantResult

from ..plan.blocks import CellT, Named
from ..plan.oracle import ORACLE
from .store import Done

OfT = TypeVar("OfT", bound=Named)

JUDGED = ("mean", "p99")
LATENCIES = ("mean", "p50", "p95", "p99")
PACE = "pace"
"""Time for each unit of work: the inverse of throughput, so that here, too, below 1 is better. Judged where
nobody measures a latency: batch work."""

THROUGHPUT = "throughput"

METRICS = (*LATENCIES, PACE, THROUGHPUT, "background", "CPU", "blame")

WORTH = 0.85
"""An oracle's ratio up to which there is something to gain: 15 % (the project's goal for `critical`)."""

SHARE_GOAL = 0.80
HARMLESS: Mapping[str, float] = {"mean": 1.01, "p99": 1.03}
"""The goals: so much of the oracle's gain where there is one, and no more harm than this elsewhere."""

LEAST_BLAME_S = 0.01
"""Less blame than this in a run on the plain host is chance, and a ratio to it means nothing."""

SHARE_DOMAIN = 0.95
"""Shares of a gain below 5 % are noise divided by noise."""


@dataclass(frozen=True, slots=True)
class Share:
    """Part of the oracle's gain: 1 is all of it, 0 none, below 0 harm."""

    share: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Compared:
    """One arm of one cell beside the plain host."""

    arm: str
    ratios: Mapping[str, Estimate]
    """By metric, each with its interval; a metric that nothing measured is left out."""
    shares: Mapping[str, Share]
    """Of the oracle's gain, by latency, where there is one."""
    least_cpu: float
    """Of all workloads' CPU time, compared with the plain host, the smallest."""
    daemon_cpu: float
    """In cores."""
    verdict: Effect | None
    goal: str


@dataclass(frozen=True, slots=True)
class Summary(Generic[CellT]):
    """One cell."""

    cell: CellT
    repetitions: int
    busy: float
    mean_ms: float
    p99_ms: float
    spread: Mapping[str, float]
    """How far, as a factor, the plain host was from itself in the worst repetition."""
    other_cores: float
    steal: float
    arms: Mapping[str, Compared]
    troubles: tuple[str, ...] = ()
    """What the daemon complained of, once for each arm."""


def summarise(cell: OfT, blocks: Sequence[Done], arms: Sequence[str]) -> Summary[OfT] | None:
    """What the finished blocks of a cell say; None if there are none."""
    mine = sorted((one for one in blocks if one.cell == cell.name), key=lambda one: one.repetition)
    if not mine:
        return None
    plain = [one.of(NONE) for one in mine]
    runs = [run for one in mine for run in one.runs]
    spread = _spread(mine, JUDGED) or _spread(mine, (PACE,))
    return Summary(
        cell,
        len(mine),
        _mean([run.busy for run in plain]),
        _mean([_latency(run, "mean") for run in plain]) / 1e6,
        _mean([_latency(run, "p99") for run in plain]) / 1e6,
        spread,
        _mean([run.other_cores for run in runs]),
        max(run.steal for run in runs),
        {arm: _compare(mine, arm, spread) for arm in arms if arm != NONE},
        tuple(dict.fromkeys(f"{run.arm}: {trouble}" for run in runs for trouble in run.troubles)),
    )


def _spread(blocks: Sequence[Done], metrics: Sequence[str]) -> Mapping[str, float]:
    control = {metric: _ratios(blocks, CONTROL, metric) for metric in metrics}
    return {metric: control_spread(ratios) for metric, ratios in control.items() if ratios}


def _compare(blocks: Sequence[Done], arm: str, spread: Mapping[str, float]) -> Compared:
    ratios = {metric: found for metric in METRICS if (found := _ratios(blocks, arm, metric))}
    effects = {metric: estimate(found) for metric, found in ratios.items()}
    told = [verdict(effects[metric], len(blocks), spread[metric]) for metric in spread if metric in effects]
    known = any(run.arm == ORACLE for run in blocks[0].runs)
    shares: dict[str, Share] = {}
    worth = False
    if known:
        oracle = {metric: _ratios(blocks, ORACLE, metric) for metric in JUDGED}
        worth = bool(oracle["mean"]) and geometric_mean(oracle["mean"]) <= WORTH
        shares = {
            metric: share_of(ratios[metric], oracle[metric])
            for metric in JUDGED
            if metric in ratios and oracle[metric] and geometric_mean(oracle[metric]) <= SHARE_DOMAIN
        }
    cpu = [_least_cpu(one.of(arm), one.of(NONE)) for one in blocks]
    judged = arm not in (CONTROL, ORACLE) and bool(told)
    return Compared(
        arm,
        effects,
        shares,
        geometric_mean(cpu),
        _mean([one.of(arm).daemon_cpu_s / one.of(arm).seconds for one in blocks]),
        _with_work_done(overall(told), effects.get("background")) if told and arm != CONTROL else None,
        (_share_goal(shares) if worth else _harm_goal(effects)) if judged and known else "",
    )


def _with_work_done(found: Effect, background: Estimate | None) -> Effect:
    """A gain that leaves background work undone is harm, as in the demo."""
    is_little = background is not None and background.ratio < LITTLE_WORK
    return Effect.HARM if found is Effect.GAIN and is_little else found


def _share_goal(shares: Mapping[str, Share]) -> str:
    """Is a gain that is there for the taking taken?"""
    if shares and all(share.low >= SHARE_GOAL for share in shares.values()):
        return "share: met"
    if any(share.high < SHARE_GOAL for share in shares.values()):
        return "share: MISSED"
    likely = shares and all(share.share >= SHARE_GOAL for share in shares.values())
    return "share: likely" if likely else "share: open"


def _harm_goal(effects: Mapping[str, Estimate]) -> str:
    """Is it harmless where there is little to gain?"""
    limits = {metric: limit for metric, limit in HARMLESS.items() if metric in effects}
    if limits and all(effects[metric].high <= limit for metric, limit in limits.items()):
        return "no harm: met"
    if any(effects[metric].low > limit for metric, limit in limits.items()):
        return "no harm: MISSED"
    return "no harm: open"


def _ratios(blocks: Sequence[Done], arm: str, metric: str) -> tuple[float, ...]:
    """Arm over plain host, repetition by repetition; empty if there is no such metric here."""
    found = [_ratio(one.of(arm), one.of(NONE), metric) for one in blocks]
    return tuple(ratio for ratio in found if ratio is not None) if None not in found else ()


def _ratio(run: RunResult, plain: RunResult, metric: str) -> float | None:
    """Latencies and throughput: every workload has one voice. The rest: the sums."""
    if metric == PACE:
        return _ratio(plain, run, THROUGHPUT)
    of = _VALUES[metric]
    pairs = [(of(one), of(base)) for one, base in zip(run.tenants, plain.tenants, strict=True)]
    if metric in (*LATENCIES, THROUGHPUT):
        # Who got nothing done in one of both is the worst off, and not somebody of whom nothing is known.
        both = all if metric in LATENCIES else any
        known = [pair for pair in pairs if both(pair)]
        return geometric_mean(paired_ratios(*zip(*known, strict=True))) if known else None
    value, base = (sum(each) for each in zip(*pairs, strict=True))
    least = LEAST_BLAME_S if metric == "blame" else 0.0
    return max(value, 1e-6) / base if base > least else None


def _latency_of(metric: str) -> Callable[[TenantResult], float]:
    return lambda tenant: tenant.value(metric) if tenant.latencies.count else 0.0


_VALUES: Mapping[str, Callable[[TenantResult], float]] = {
    **{metric: _latency_of(metric) for metric in LATENCIES},
    THROUGHPUT: lambda tenant: tenant.throughput_per_s,
    "background": lambda tenant: tenant.background_cores,
    "CPU": lambda tenant: tenant.cores,
    "blame": lambda tenant: tenant.blame_s or 0.0,
}


def _latency(run: RunResult, metric: str) -> float:
    """Over the workloads that have any."""
    values = [tenant.value(metric) for tenant in run.tenants if tenant.latencies.count]
    return geometric_mean(values) if values else 0.0


def _least_cpu(run: RunResult, plain: RunResult) -> float:
    pairs = zip(run.tenants, plain.tenants, strict=True)
    return min(max(one.cores, 1e-6) / max(base.cores, 1e-6) for one, base in pairs)


def share_of(ratios: Sequence[float], oracle: Sequence[float], seed: int = 0) -> Share:
    """(1 - ratio) / (1 - oracle's ratio), bootstrapped over repetitions, both values of each together, with
    the interval of ratios: without end where there are too few."""
    mine, best = numpy.log(numpy.asarray(ratios)), numpy.log(numpy.asarray(oracle))
    point = _part(float(mine.mean()), float(best.mean()))
    if len(mine) < MINIMUM_REPETITIONS:
        return Share(point, -math.inf, math.inf)
    picks = numpy.random.default_rng(seed).integers(0, len(mine), (RESAMPLES, len(mine)))
    parts = (1 - numpy.exp(mine[picks].mean(axis=1))) / numpy.maximum(
        1 - numpy.exp(best[picks].mean(axis=1)), 1e-3
    )
    tail = (1 - expanded_confidence(len(mine))) / 2
    low, high = numpy.quantile(parts, [tail, 1 - tail])
    return Share(point, float(low), float(high))


def _part(mine: float, best: float) -> float:
    return (1 - math.exp(mine)) / (1 - math.exp(best))


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
