"""Every arm against the default: per workload, and pooled over a kind of them and over all."""

from __future__ import annotations

from dataclasses import dataclass

from dasec.lab.kit.arms import CONTROL, NONE
from dasec.lab.kit.ratios import (
    Effect,
    Estimate,
    control_spread,
    estimate,
    overall,
    paired_ratios,
    pooled_ratios,
    verdict,
)
from dasec.lab.kit.results import ALL, Measured

LATENCIES = ("mean", "p50", "p95", "p99")
METRICS = (*LATENCIES, "throughput", "CPU")

JUDGED = ("mean", "p99")
"""What the verdict on a policy looks at: the two figures of the paper's claim (§5)."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """One arm, one workload (or kind, or all), one metric: ratios to the default of the same repetition."""

    arm: str
    workload: str
    metric: str
    ratios: tuple[float, ...]
    estimate: Estimate
    control_spread: float
    verdict: Effect | None


def compare(measured: Measured) -> tuple[Comparison, ...]:
    """All comparisons with the default, its control's included."""
    return tuple(
        _compare_one(measured, arm, workload, metric)
        for arm in measured.arms
        if arm != NONE
        for workload in (ALL, *measured.kinds, *measured.tenants)
        for metric in METRICS
    )


def _compare_one(measured: Measured, arm: str, workload: str, metric: str) -> Comparison:
    ratios = _ratios(measured, arm, workload, metric)
    effect = estimate(ratios)
    spread = control_spread(_ratios(measured, CONTROL, workload, metric))
    judged = verdict(effect, len(ratios), spread) if metric in LATENCIES and arm != CONTROL else None
    return Comparison(arm, workload, metric, ratios, effect, spread, judged)


def _ratios(measured: Measured, arm: str, workload: str, metric: str) -> tuple[float, ...]:
    return pooled_ratios(
        [
            paired_ratios(measured.values(arm, tenant, metric), measured.values(NONE, tenant, metric))
            for tenant in measured.tenants_of(workload)
        ]
    )


def verdict_on(arm: str, comparisons: tuple[Comparison, ...], workload: str = ALL) -> Effect:
    """The verdict on a policy: over all workloads, or for one."""
    return overall(
        [
            comparison.verdict
            for comparison in comparisons
            if (comparison.arm, comparison.workload) == (arm, workload)
            and comparison.metric in JUDGED
            and comparison.verdict is not None
        ]
    )
