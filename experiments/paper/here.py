"""What `here.toml` gave, from FIGURE/here/*.csv, as tables. Pure but for reading them."""

from __future__ import annotations

import csv
import statistics
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from dasec.demo.arms import CONTROL, NONE
from dasec.demo.statistics import Estimate, estimate, geometric_mean

from ..apps.driver import CGROUP

FOLDER = Path(__file__).resolve().parent
DATA = "here"
METRICS = ("mean", "p99")
POOLED = ("mean", "p50", "p99")
LEAST_POOLED = 12
"""Repetitions: an arm of one figure alone has too few to say more than that figure does."""

WHOLE = "all"

Line = Mapping[str, str]
"""Of comparisons.csv or runs.csv, as `python -m experiments.apps report` writes them."""

Column = tuple[str, str]
"""A cell, and the workload in it that is judged."""


def figures() -> tuple[str, ...]:
    """Those that were run here."""
    return tuple(sorted(file.parent.parent.name for file in FOLDER.glob(f"*/{DATA}/comparisons.csv")))


def lines(figure: str, table: str) -> tuple[Line, ...]:
    """Of one of its CSV files."""
    with (FOLDER / figure / DATA / f"{table}.csv").open(encoding="utf-8", newline="") as file:
        return tuple(csv.DictReader(file))


def columns(compared: Sequence[Line]) -> Mapping[Column, str]:
    """With their titles, by mix and ratio; a mix of several workloads is told part by part."""
    known: dict[str, list[Line]] = {}
    for one in compared:
        known.setdefault(one["cell"], []).append(one)
    split = {cell for cell, them in known.items() if any(one["part"] != WHOLE for one in them)}
    told = [one for one in compared if (one["part"] == WHOLE) != (one["cell"] in split)]
    told.sort(key=lambda one: (one["mix"], float(one["ratio"]), one["place"]))
    return {(one["cell"], one["part"]): _title(one) for one in told}


def _title(one: Line) -> str:
    mix = one["mix"] if one["part"] == WHOLE else f"{one['mix']}: {one['part']}"
    place = "" if one["place"] == CGROUP else f", {one['place']}"
    return f"{mix}, ratio {float(one['ratio']):g}{place}"


def table(figure: str) -> str:
    """Mean and p99 of the plain host, and of each arm over it with the interval and the verdict."""
    compared, runs = lines(figure, "comparisons"), lines(figure, "runs")
    shown = columns(compared)
    rows = [["none, ms", *(_plain(runs, column) for column in shown)]]
    for arm in dict.fromkeys(one["arm"] for one in compared):
        rows.append([arm, *(_over_none(compared, column, arm) for column in shown)])
    return _table(["mean, p99 over none", *shown.values()], rows)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(row)} |" for row in [head, ["---"] * len(head), *rows])


def _plain(runs: Sequence[Line], column: Column) -> str:
    """The mean over its instances and repetitions; batch work has no latencies."""
    cell, part = column
    mine = [
        one for one in runs if (one["cell"], one["arm"]) == (cell, NONE) and part in (WHOLE, one["workload"])
    ]
    if not all(one["mean_ms"] for one in mine):
        return "–"
    return ", ".join(
        f"{statistics.fmean(float(one[f'{metric}_ms']) for one in mine):.3g}" for metric in METRICS
    )


def pooled() -> Mapping[str, Mapping[str, Sequence[float]]]:
    """All repetitions of all figures with nothing but memcached: of each arm, by metric, the ratios to both
    plain runs."""
    found: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for figure in figures():
        for block in _blocks(lines(figure, "runs")):
            for metric in POOLED:
                told = {arm: geometric_mean(each[metric]) for arm, each in block.items()}
                plain = geometric_mean([told[NONE], told[CONTROL]])
                for arm, value in told.items():
                    found[arm][metric].append(value / plain)
    return {arm: found[arm] for arm in sorted(found) if len(found[arm][POOLED[0]]) >= LEAST_POOLED}


def pooled_table() -> str:
    """With intervals."""
    rows = [
        [arm, *(_told(estimate(each[metric])) for metric in POOLED), str(len(each[POOLED[0]]))]
        for arm, each in pooled().items()
    ]
    return _table(["over both plain runs", *POOLED, "repetitions"], rows)


def _blocks(runs: Sequence[Line]) -> Iterator[Mapping[str, Mapping[str, Sequence[float]]]]:
    """Of each repetition with memcached alone, by arm, the latencies of its instances."""
    by_cell: dict[str, list[Line]] = defaultdict(list)
    for one in runs:
        by_cell[one["cell"]].append(one)
    for mine in by_cell.values():
        if {one["workload"] for one in mine} != {"memcached"}:
            continue
        blocks: dict[str, dict[str, dict[str, list[float]]]] = {}
        for one in mine:
            arm = blocks.setdefault(one["repetition"], {}).setdefault(one["arm"], defaultdict(list))
            for metric in POOLED:
                arm[metric].append(float(one[f"{metric}_ms"]))
        yield from blocks.values()


def _told(one: Estimate) -> str:
    return f"{one.ratio:.2f} [{one.low:.2f}, {one.high:.2f}]"


def effects(compared: Sequence[Line], column: Column, arm: str) -> Iterator[tuple[str, Line]]:
    """By metric: mean and p99 of a service, pace of batch work."""
    cell, part = column
    mine = {
        one["metric"]: one for one in compared if (one["cell"], one["part"], one["arm"]) == (cell, part, arm)
    }
    for metric in METRICS if "mean" in mine else ("pace",):
        if metric in mine:
            yield metric, mine[metric]


def _over_none(compared: Sequence[Line], column: Column, arm: str) -> str:
    told, verdict = [], ""
    for _, one in effects(compared, column, arm):
        told.append(f"{float(one['over_none']):.2f} [{float(one['low']):.2f}, {float(one['high']):.2f}]")
        verdict = one["verdict"]
    return ", ".join(told) + (f": {verdict}" if verdict else "")
