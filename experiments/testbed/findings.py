"""What docs/findings.md says, from the raw runs in results/."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

from pydantic import TypeAdapter

from dasec.demo.arms import CONTROL, NONE
from dasec.demo.results import RunResult

from ..suite.store import Done

RESULTS = Path(__file__).resolve().parent / "results"
NAMES = tuple(sorted(file.stem for file in RESULTS.glob("*.jsonl")))
CAUSES = ("causes", "sockets")
"""Those of the plain kernel alone; the others compare policies."""

METRICS = ("mean", "p99")
PINNED = "-pinned"

_DONE = TypeAdapter(Done)

Values = Mapping[str, list[float]]
"""Of each metric, in the order of repetitions or, of one, A and A again."""


def blocks(name: str) -> tuple[Done, ...]:
    """The raw runs of one experiment, as they were measured, by repetition."""
    lines = (RESULTS / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    return tuple(sorted(map(_DONE.validate_json, lines), key=lambda block: (block.cell, block.repetition)))


def latency_ms(run: RunResult, metric: str) -> float:
    """The mean over its workloads."""
    each = [tenant.latencies for tenant in run.tenants]
    told_ns = [one.mean_ns if metric == "mean" else one.percentiles_ns[metric] for one in each]
    return statistics.fmean(told_ns) / 1e6


def load_and_ratio(cell: str) -> tuple[str, float]:
    """`bursts-130-r3-u0.286-vm`: bursts at ratio 3."""
    load, ratio, *_ = cell.rsplit("-", 3)
    return load.rsplit("-", 1)[0], float(ratio.removeprefix("r"))


def growth(name: str) -> dict[str, dict[float, Values]]:
    """Latencies in ms of the plain kernel, A and A again, by load and ratio."""
    found: dict[str, dict[float, Values]] = defaultdict(dict)
    for block in blocks(name):
        load, ratio = load_and_ratio(block.cell)
        plain = sorted(block.runs, key=lambda run: (NONE, CONTROL).index(run.arm))
        found[load][ratio] = {metric: [latency_ms(run, metric) for run in plain] for metric in METRICS}
    return {load: dict(sorted(found[load].items())) for load in sorted(found)}


def plain(name: str) -> dict[float, RunResult]:
    """The first run of the plain kernel at each ratio."""
    found: dict[float, RunResult] = {}
    for block in blocks(name):
        _, at = load_and_ratio(block.cell)
        found.setdefault(at, next(run for run in block.runs if run.arm == NONE))
    return dict(sorted(found.items()))


def over_none(name: str) -> dict[float, dict[str, Values]]:
    """Ratios of each arm to the plain kernel of the same repetition, by consolidation ratio."""
    found: dict[float, dict[str, dict[str, list[float]]]] = defaultdict(lambda: defaultdict(dict))
    for block in blocks(name):
        _, at = load_and_ratio(block.cell)
        plain = next(run for run in block.runs if run.arm == NONE)
        for run in block.runs:
            for metric in METRICS:
                ratio = latency_ms(run, metric) / latency_ms(plain, metric)
                found[at][run.arm].setdefault(metric, []).append(ratio)
    return {at: dict(found[at]) for at in sorted(found)}
