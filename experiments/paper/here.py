"""What `here.toml` gave, from FIGURE/here/*.csv: `python -m experiments.paper.here` draws the pictures."""

from __future__ import annotations

import csv
import statistics
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from dasec.demo.arms import NONE
from dasec.demo.plot import COLOURS, RATIOS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FOLDER = Path(__file__).resolve().parent
DATA, PICTURE = "here", "here.png"
METRICS = ("mean", "p99")
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
    return f"{mix}, ratio {float(one['ratio']):g}"


def table(figure: str) -> str:
    """Mean and p99 of the plain host, and of each arm over it with the interval and the verdict."""
    compared, runs = lines(figure, "comparisons"), lines(figure, "runs")
    shown = columns(compared)
    rows = [["none, ms", *(_plain(runs, column) for column in shown)]]
    for arm in dict.fromkeys(one["arm"] for one in compared):
        rows.append([arm, *(_over_none(compared, column, arm) for column in shown)])
    head = ["mean, p99 over none", *shown.values()]
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


def draw(figure: str, target: Path) -> None:
    """Each arm beside the plain host, with its interval; a panel a metric."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot
    from matplotlib.lines import Line2D

    compared = lines(figure, "comparisons")
    shown, arms = columns(compared), list(dict.fromkeys(one["arm"] for one in compared))
    height = 1.2 + 0.17 * len(shown) * len(arms)
    made, panels = pyplot.subplots(1, len(METRICS), figsize=(10, height), sharey=True, layout="constrained")
    for metric, axes in zip(METRICS, panels, strict=True):
        for place, column in enumerate(shown):
            for number, arm in enumerate(arms):
                for name, one in effects(compared, column, arm):
                    if name in (metric, "pace"):
                        _bar(axes, one, place + 0.8 * number / len(arms), COLOURS[number + 1])
        axes.set(title=f"{metric} over none", xscale="log")
        axes.axvline(1, color="0.5", linewidth=0.8)
        axes.set_xticks([ratio for ratio in RATIOS if axes.get_xlim()[0] <= ratio <= axes.get_xlim()[1]])
        axes.xaxis.set_major_formatter("{x:g}")
        axes.minorticks_off()
        axes.grid(visible=True, axis="x", color="0.9")
    panels[0].set_yticks([place + 0.3 for place in range(len(shown))], list(shown.values()), fontsize=7)
    panels[0].invert_yaxis()
    handles = [Line2D([], [], color=COLOURS[number + 1], label=arm) for number, arm in enumerate(arms)]
    made.legend(handles=handles, loc="outside lower center", ncols=len(arms), fontsize=7)
    made.savefig(target, dpi=90)
    pyplot.close(made)


def _bar(axes: Axes, one: Line, y: float, colour: str) -> None:
    axes.plot([float(one["low"]), float(one["high"])], [y, y], color=colour)
    axes.plot(float(one["over_none"]), y, "D", color=colour, markersize=4)


if __name__ == "__main__":
    for each in figures():
        draw(each, FOLDER / each / PICTURE)
