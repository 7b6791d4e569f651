"""The tables of docs/findings.md as text. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence

from dasec.lab.kit.arms import NONE
from dasec.lab.kit.results import RunResult

from ...results.markdown import markdown_table
from .findings import METRICS, PINNED, Values, latency_ms

NOT_RUN = "not run"


def growth_table(causes: Mapping[str, Mapping[float, Values]]) -> str:
    """Of each load mean and p99 in ms by ratio, and in brackets the same once more over the first time."""
    ratios = sorted({ratio for at in causes.values() for ratio in at})
    rows = [[_named(cause), *(_latencies(at.get(ratio)) for ratio in ratios)] for cause, at in causes.items()]
    return markdown_table(["mean, p99 ms", *(f"ratio {ratio:.3g}" for ratio in ratios)], rows)


def plain_table(found: Mapping[float, Mapping[str, Sequence[RunResult]]]) -> str:
    """How the plain kernel grows with the ratio: the paper's Figures 1, 2, 7, 8 and Table 1."""
    rows = [
        [
            f"{ratio:.3g}",
            f"{100 * run.busy:.0f} %",
            *(f"{latency_ms(run, metric):.1f}" for metric in METRICS),
            f"{statistics.fmean(one.throughput_per_s for one in run.tenants):.0f}",
        ]
        for ratio, arms in found.items()
        for run in arms[NONE][:1]
    ]
    return markdown_table(["ratio", "busy", "mean ms", "p99 ms", "requests/s of a workload"], rows)


def policy_table(found: Mapping[float, Mapping[str, Values]], arms: Sequence[str]) -> str:
    """Of each arm mean and p99 over the plain kernel by ratio: the geometric mean, and each repetition."""
    rows = [[arm, *(_over_none(found[ratio].get(arm)) for ratio in found)] for arm in arms]
    return markdown_table(["mean, p99 over none", *(f"ratio {ratio:.3g}" for ratio in found)], rows)


def cause_table(found: Mapping[str, Mapping[float, Mapping[str, Values]]], arms: Sequence[str]) -> str:
    """The same of several loads, each by its name."""
    ratios = sorted({ratio for at in found.values() for ratio in at})
    rows = [
        [f"{_named(cause)}: {arm}", *(_over_none(at.get(ratio, {}).get(arm)) for ratio in ratios)]
        for cause, at in found.items()
        for arm in arms
    ]
    return markdown_table(["mean, p99 over none", *(f"ratio {ratio:.3g}" for ratio in ratios)], rows)


def cost_table(found: Mapping[float, Mapping[str, Sequence[RunResult]]], arms: Sequence[str]) -> str:
    """What the daemon took of a CPU of its own between a run's marks, and what it did in all of the run."""
    rows = []
    for arm in arms:
        for ratio, runs in found.items():
            for run in runs.get(arm, ())[:1]:
                late = run.decided.get("late periods", 0)
                told = (f"{late} of {late + run.decided['periods']}", str(run.decided.get("applied", 0)))
                rows.append([arm, f"{ratio:.3g}", f"{100 * run.daemon_cpu_s / run.seconds:.0f} %", *told])
    return markdown_table(["", "ratio", "of a CPU", "periods left out", "writes"], rows)


def short_table(rows: Iterable[tuple[str, str, Values, Mapping[str, Values]]], arms: Sequence[str]) -> str:
    """Much in few numbers: at a place, with a kernel, how the plain kernel has grown, and arms over it."""
    head = ["mean, p99", "kernel", "plain kernel over ratio 1", *(f"{arm} over plain" for arm in arms)]
    return markdown_table(
        head,
        [
            [where, kernel, _over_none(grown), *(_over_none(found[arm]) for arm in arms)]
            for where, kernel, grown, found in rows
        ],
    )


def _named(cause: str) -> str:
    plain = cause.removesuffix(PINNED)
    return f"{plain.replace('-', ' ')}{', pinned' if plain != cause else ''}"


def _latencies(values: Values | None) -> str:
    if values is None:
        return NOT_RUN
    told = ", ".join(f"{values[metric][0]:.1f}" for metric in METRICS)
    again = ", ".join(f"{values[metric][1] / values[metric][0]:.2f}" for metric in METRICS)
    return f"{told} [{again}]"


def _over_none(values: Values | None) -> str:
    return NOT_RUN if values is None else ", ".join(_ratio(values[metric]) for metric in METRICS)


def _ratio(each: Sequence[float]) -> str:
    """Without the zero before the point."""
    mean = f"{statistics.geometric_mean(each):.2f}".removeprefix("0")
    if len(each) == 1:
        return mean
    return f"{mean} [{', '.join(f'{one:.2f}'.removeprefix('0') for one in each)}]"
