"""The result as JSON: everything that was measured, raw, and how."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from .arms import CONTROL, NONE
from .comparison import Comparison, verdict_on
from .results import Measured
from .run import Plan

SCHEMA = 1


def document(
    plan: Plan,
    measured: Measured,
    comparisons: tuple[Comparison, ...],
    host: dict[str, object],
    warnings: Sequence[str],
) -> dict[str, object]:
    """All of it. Latencies are in nanoseconds; `hdr` is an HdrHistogram, V2 compressed, base64."""
    return {
        "schema": SCHEMA,
        "host": host,
        "warnings": list(warnings),
        "scenario": {
            "cores": plan.scenario.cores,
            "vcpus": plan.scenario.vcpus,
            "consolidation_ratio": plan.scenario.consolidation_ratio,
            "tenants": [{"kind": type(one).__name__, **asdict(one)} for one in plan.scenario.tenants],
        },
        "layout": plan.layout,
        "timing": asdict(plan.timing),
        "seed": plan.seed,
        "arms": plan.arms,
        "settings": dict(plan.settings),
        "orders": plan.orders,
        "runs": [asdict(run) for run in measured.runs],
        "comparisons": [asdict(one) for one in comparisons],
        "verdicts": {
            arm: verdict_on(arm, comparisons) for arm in measured.arms if arm not in (NONE, CONTROL)
        },
    }
