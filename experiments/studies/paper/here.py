"""What the experiment files gave here, from FIGURE/FILE/*.csv, as tables. Pure but for reading them."""

from __future__ import annotations

import csv
import statistics
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from dasec.lab.kit.arms import NONE
from dasec.lab.kit.driver import CGROUP
from dasec.lab.kit.ratios import Estimate

from ...results.analysis import PACE
from ...results.effects import effect
from ...results.markdown import markdown_table

FOLDER = Path(__file__).resolve().parent
METRICS = ("mean", "p99")
MOST_OTHER_CORES = 0.2
"""Used by something else on the host, as the pages say it: a fifth of a core."""

WHOLE = "all"

Line = Mapping[str, str]
"""Of comparisons.csv or runs.csv, as `python -m experiments report` writes them."""

Column = tuple[str, str]
"""A cell, and the workload in it that is judged."""


def kept_runs() -> tuple[str, ...]:
    """Of which file of which figure: "fig14/here"."""
    return tuple(sorted(str(file.parent.relative_to(FOLDER)) for file in FOLDER.glob("*/*/comparisons.csv")))


def lines(kept: str, table: str) -> tuple[Line, ...]:
    """Of one of the CSV files."""
    with (FOLDER / kept / f"{table}.csv").open(encoding="utf-8", newline="") as file:
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


def table(kept: str) -> str:
    """Mean and p99 of the plain host, and of each arm over it with the interval and the verdict."""
    compared, runs = lines(kept, "comparisons"), lines(kept, "runs")
    shown = columns(compared)
    rows = [["none, ms", *(_plain(runs, column) for column in shown)]]
    for arm in dict.fromkeys(one["arm"] for one in compared):
        rows.append([arm, *(_over_none(compared, column, arm) for column in shown)])
    return markdown_table(["mean, p99 over none", *shown.values()], rows)


def surroundings(kept: str) -> str:
    """What else went on while it was run, as its page says it."""
    runs = {(one["cell"], one["repetition"], one["arm"]): one for one in lines(kept, "runs")}.values()
    stolen = [100 * float(one["steal"]) for one in runs]
    return (
        f"the hypervisor took {statistics.median(stolen):.1f} % of the CPU time in the middle of the runs and"
        f" {max(stolen):.0f} % at most; in {sum(map(disturbed, runs))} of {len(runs)} runs something else on"
        " this host used more than a fifth of a core"
    )


def disturbed(run: Line) -> bool:
    """Whether something else used so much."""
    return float(run["other_cores"]) > MOST_OTHER_CORES


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


def effects(compared: Sequence[Line], column: Column, arm: str) -> Iterator[tuple[str, Line]]:
    """By metric: mean and p99 of a service, pace of batch work."""
    cell, part = column
    mine = {
        one["metric"]: one for one in compared if (one["cell"], one["part"], one["arm"]) == (cell, part, arm)
    }
    for metric in METRICS if METRICS[0] in mine else (PACE,):
        if metric in mine:
            yield metric, mine[metric]


def _over_none(compared: Sequence[Line], column: Column, arm: str) -> str:
    told, verdict = [], ""
    for _, one in effects(compared, column, arm):
        told.append(effect(Estimate(float(one["over_none"]), float(one["low"]), float(one["high"]))))
        verdict = one["verdict"]
    return ", ".join(told) + (f": {verdict}" if verdict else "")
