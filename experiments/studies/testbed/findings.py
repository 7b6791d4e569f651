"""What docs/findings.md says, from the raw runs in results/."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from dasec.lab.kit.arms import CONTROL, NONE
from dasec.lab.kit.results import RunResult

from ...results.store import Done, done_in

RESULTS = Path(__file__).resolve().parent / "results"
NAMES = tuple(sorted(file.stem for file in RESULTS.glob("*.jsonl")))
WAITING = tuple(sorted(file.stem for file in RESULTS.glob("*.json")))
CAUSES = ("causes", "sockets")
"""Those of the plain kernel alone; all others compare policies."""

POLICIES_BY_CAUSE = tuple(name for name in NAMES if name.startswith("pinned-causes"))
"""Those with policies under several loads."""

METRICS = ("mean", "p99")
PLAIN = (NONE, CONTROL)
PINNED = "-pinned"

KERNELS = ("6.12", "6.1")
PLACES = (
    ("30 % busy, threads free", 3, ("sweep", "sweep-cfs")),
    ("30 % busy, threads pinned", 3, ("pinned", "pinned-cfs")),
    ("50 % busy, threads pinned", 5, ("pinned", "pinned-cfs")),
    ("90 % busy, threads free", 9, ("sweep", "sweep-cfs")),
)
"""For the results in short: what, at which ratio, and the experiment on each kernel."""

Values = Mapping[str, list[float]]
"""Of each metric, in the order of repetitions or, of one, A and A again."""


def blocks(name: str) -> tuple[Done, ...]:
    """The raw runs of one experiment, as they were measured, by repetition."""
    lines = (RESULTS / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    return tuple(sorted(done_in(lines), key=lambda block: (block.cell, block.repetition)))


def latency_ms(run: RunResult, metric: str) -> float:
    """The mean over its workloads."""
    each = [tenant.latencies for tenant in run.tenants]
    told_ns = [one.mean_ns if metric == "mean" else one.percentiles_ns[metric] for one in each]
    return statistics.fmean(told_ns) / 1e6


def load_and_ratio(cell: str) -> tuple[str, float]:
    """`bursts-130-r3-u0.286-vm`: bursts at ratio 3."""
    load, ratio, *_ = cell.rsplit("-", 3)
    return load.rsplit("-", 1)[0], float(ratio.removeprefix("r"))


def runs(name: str) -> dict[str, dict[float, dict[str, list[RunResult]]]]:
    """By load, ratio and arm, in the order of repetitions."""
    found: dict[str, dict[float, dict[str, list[RunResult]]]] = {}
    for block in sorted(blocks(name), key=lambda block: load_and_ratio(block.cell)):
        load, ratio = load_and_ratio(block.cell)
        arms = found.setdefault(load, {}).setdefault(ratio, {})
        for run in block.runs:
            arms.setdefault(run.arm, []).append(run)
    return found


def only(name: str) -> dict[float, dict[str, list[RunResult]]]:
    """The same of an experiment with one load."""
    (found,) = runs(name).values()
    return found


def growth(name: str) -> dict[str, dict[float, Values]]:
    """Latencies in ms of the plain kernel, A and A again, by load and ratio."""
    return {
        load: {
            ratio: {metric: [latency_ms(arms[arm][0], metric) for arm in PLAIN] for metric in METRICS}
            for ratio, arms in at.items()
        }
        for load, at in runs(name).items()
    }


def over_none(found: Mapping[float, Mapping[str, Sequence[RunResult]]]) -> dict[float, dict[str, Values]]:
    """Ratios of each arm of one load to the plain kernel of the same repetition, by consolidation ratio."""
    return {
        ratio: {arm: _over(each, arms[NONE]) for arm, each in arms.items()} for ratio, arms in found.items()
    }


def grown(found: Mapping[float, Mapping[str, Sequence[RunResult]]]) -> dict[float, Values]:
    """How the plain kernel's latencies are over those at the lowest ratio, of the same repetition."""
    lowest = found[min(found)][NONE]
    return {ratio: _over(arms[NONE], lowest) for ratio, arms in found.items()}


def in_short() -> Iterator[tuple[str, str, Values, Mapping[str, Values]]]:
    """Where threads wait and where they do not: how the plain kernel has grown, and each arm over it."""
    for where, ratio, names in PLACES:
        for kernel, name in zip(KERNELS, names, strict=True):
            found = only(name)
            yield where, kernel, grown(found)[ratio], over_none(found)[ratio]


def _over(each: Sequence[RunResult], base: Sequence[RunResult]) -> Values:
    return {
        metric: [
            latency_ms(run, metric) / latency_ms(beside, metric)
            for run, beside in zip(each, base, strict=True)
        ]
        for metric in METRICS
    }
