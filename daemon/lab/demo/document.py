"""The result as JSON: everything that was measured, raw, and how."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from ..kit.bench import RunPlan
from ..kit.finite import finite
from ..kit.results import Measured
from .lines import Line
from .situations import Situation

SCHEMA = 3


def document(
    situations: Sequence[Situation],
    plans: Sequence[RunPlan],
    measured: Sequence[Measured],
    lines: Sequence[Line],
    host: dict[str, object],
    warnings: Sequence[str],
) -> dict[str, object]:
    """All of it. Latencies are in nanoseconds; `hdr` is an HdrHistogram, V2 compressed, base64; an interval
    without an end, as of few repetitions, has null for it."""
    return {
        "schema": SCHEMA,
        "host": host,
        "warnings": list(warnings),
        "situations": [_situation(*one) for one in zip(situations, plans, measured, strict=True)],
        "lines": [finite(asdict(line) | {"answer": line.answer}) for line in lines],
    }


def _situation(situation: Situation, plan: RunPlan, measured: Measured) -> dict[str, object]:
    scenario = plan.scenario
    return {
        "name": situation.name,
        "gist": situation.gist,
        "cores": scenario.cores,
        "vcpus": scenario.vcpus,
        "consolidation_ratio": scenario.consolidation_ratio,
        "tenants": [asdict(one) | {"driver": one.driver.name} for one in scenario.tenants],
        "layout": plan.layout,
        "timing": asdict(plan.timing),
        "seed": plan.seed,
        "arms": plan.arms,
        "settings": dict(plan.settings),
        "orders": plan.orders,
        "runs": [asdict(run) for run in measured.runs],
        "thrown_away": measured.thrown_away,
    }
