"""The result as pictures."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from dasec.lab.demo.plot import COLOURS, RATIOS
from dasec.lab.kit.arms import CONTROL

from ..plan.cells import Cell
from ..plan.oracle import ORACLE
from ..plan.terms import HasArms
from .analysis import JUDGED, SHARE_GOAL, Compared, Summary
from .settling import GOAL_PERIODS, Course

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ACROSS = 4
"""Panels in a row."""

STYLES = {"mean": "-", "p99": ":"}
MARKERS = "osD^vP*X"


def draw(asked: HasArms, summaries: Sequence[Summary[Cell]], folder: Path) -> tuple[str, ...]:
    """Write the pictures for which there are numbers; their names."""
    drawn = []
    if len({one.cell.utilisation for one in summaries}) > 1:
        lines = _draw_lines(asked, summaries, lambda one: one.busy, "cores busy on the plain host")
        drawn.append(_save(lines, folder, "utilisation.png"))
    if len({one.cell.scenario.consolidation_ratio for one in summaries}) > 1:
        lines = _draw_lines(
            asked, summaries, lambda one: one.cell.scenario.consolidation_ratio, "vCPUs a core"
        )
        drawn.append(_save(lines, folder, "ratio.png"))
    if any(one.shares for each in summaries for one in each.arms.values()):
        drawn.append(_save(_draw_shares(asked, summaries), folder, "shares.png"))
    for name, metric in (("blame.png", "blame"), ("background.png", "background")):
        if any(metric in one.ratios for each in summaries for one in each.arms.values()):
            drawn.append(_save(_draw_pairs(asked, summaries, metric), folder, name))
    return tuple(drawn)


def draw_settling(courses: Sequence[Course], asked: HasArms, folder: Path) -> str:
    """The weight of the critical over that of the others, from the step on; a line for each run."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 4.5), dpi=110, layout="constrained")
    axes = figure.subplots()
    for arm in dict.fromkeys(one.arm for one in courses):
        for number, one in enumerate(each for each in courses if each.arm == arm):
            axes.plot(one.ratios, color=_colour(asked, arm), alpha=0.6, label=arm if number == 0 else None)
    axes.axvline(GOAL_PERIODS, color="0.5", linewidth=0.8, linestyle="--", label="goal")
    axes.set_xlabel("periods since background began")
    axes.set_ylabel("weight, critical / others")
    axes.grid(visible=True, color="0.9")
    axes.legend(fontsize=8)
    return _save(figure, folder, "settling.png")


def _save(figure: object, folder: Path, name: str) -> str:
    from matplotlib.figure import Figure

    assert isinstance(figure, Figure)
    figure.savefig(folder / name, format="png")
    return name


def _colour(asked: HasArms, arm: str) -> str:
    return COLOURS[asked.arms.index(arm) % len(COLOURS)]


def _loads(summaries: Sequence[Summary[Cell]]) -> list[str]:
    return list(dict.fromkeys(one.cell.load for one in summaries))


def _panels(loads: Sequence[str], title: str) -> tuple[object, Iterator[Axes]]:
    from matplotlib.figure import Figure

    rows = math.ceil(len(loads) / ACROSS)
    columns = min(ACROSS, len(loads))
    figure = Figure(figsize=(3.4 * columns + 1, 3.0 * rows + 0.8), dpi=110, layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False, sharey=True)
    figure.suptitle(title, fontsize=11)
    for axes in grid.flat[len(loads) :]:
        axes.set_axis_off()
    return figure, iter(grid.flat)


def _draw_lines(
    asked: HasArms, summaries: Sequence[Summary[Cell]], along: Callable[[Summary[Cell]], float], label: str
) -> object:
    """For each load a panel; a line for each policy and latency, at each value the mean over the rest."""
    loads = _loads(summaries)
    figure, panels = _panels(
        loads, "Ratio to the plain host: mean (line) and p99 (dotted); below 1 is better"
    )
    for load, axes in zip(loads, panels, strict=False):
        mine = sorted((one for one in summaries if one.cell.load == load), key=along)
        for arm in (arm for arm in asked.arms if arm != "none"):
            for metric in JUDGED:
                points = [
                    (along(one), one.arms[arm].ratios[metric].ratio)
                    for one in mine
                    if metric in one.arms[arm].ratios
                ]
                axes.plot(
                    [x for x, _ in points],
                    [y for _, y in points],
                    STYLES[metric],
                    marker="o",
                    markersize=3,
                    color=_colour(asked, arm),
                    label=arm if metric == "mean" else None,
                )
        _ratio_axis(axes)
        axes.set_title(load, fontsize=10)
        axes.set_xlabel(label, fontsize=8)
        axes.legend(fontsize=6)
    return figure


def _ratio_axis(axes: Axes) -> None:
    axes.axhline(1, color="0.5", linewidth=0.8)
    axes.set_yscale("log")
    low, high = axes.get_ylim()
    axes.set_yticks([ratio for ratio in RATIOS if low <= ratio <= high])
    axes.yaxis.set_major_formatter("{x:g}")
    axes.minorticks_off()
    axes.grid(visible=True, color="0.9")


def _draw_shares(asked: HasArms, summaries: Sequence[Summary[Cell]]) -> object:
    from matplotlib.figure import Figure

    arms = [arm for arm in asked.arms if arm not in ("none", CONTROL, ORACLE)]
    rows = [one for one in summaries if any(one.arms[arm].shares for arm in arms)]
    figure = Figure(figsize=(11, 1.5 + 0.35 * len(rows)), dpi=110, layout="constrained")
    axes = figure.subplots(1, len(JUDGED), sharey=True)
    for panel, metric in zip(axes, JUDGED, strict=True):
        for number, arm in enumerate(arms):
            for row, one in enumerate(rows):
                found = one.arms[arm].shares.get(metric)
                if found:
                    panel.plot(
                        [max(found.low, -1.5), min(found.high, 2.0)],
                        [row + 0.15 * number] * 2,
                        color=_colour(asked, arm),
                    )
                    panel.plot(
                        min(max(found.share, -1.5), 2.0),
                        row + 0.15 * number,
                        MARKERS[number % len(MARKERS)],
                        color=_colour(asked, arm),
                        label=arm if row == 0 else None,
                    )
        panel.axvline(1, color="0.5", linewidth=0.8)
        panel.axvline(SHARE_GOAL, color="0.5", linewidth=0.8, linestyle="--")
        panel.set_xlim(-1.6, 2.1)
        panel.set_yticks(range(len(rows)), [one.cell.name for one in rows], fontsize=7)
        panel.set_title(f"{metric}: share of the oracle's gain (dashed: the goal)", fontsize=9)
        panel.grid(visible=True, axis="x", color="0.9")
    axes[0].invert_yaxis()
    handles = [
        axes[0].plot([], [], MARKERS[number % len(MARKERS)], color=_colour(asked, arm), label=arm)[0]
        for number, arm in enumerate(arms)
    ]
    axes[-1].legend(handles=handles, fontsize=7)
    return figure


def _draw_pairs(asked: HasArms, summaries: Sequence[Summary[Cell]], metric: str) -> object:
    """Each cell under each policy a point: another metric's ratio against that of mean latency."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 6), dpi=110, layout="constrained")
    axes = figure.subplots()
    loads = _loads(summaries)
    for arm in (arm for arm in asked.arms if arm != "none"):
        for one in summaries:
            found: Compared = one.arms[arm]
            if metric in found.ratios and "mean" in found.ratios:
                axes.plot(
                    found.ratios[metric].ratio,
                    found.ratios["mean"].ratio,
                    MARKERS[loads.index(one.cell.load) % len(MARKERS)],
                    color=_colour(asked, arm),
                    alpha=0.8,
                )
        axes.plot([], [], "o", color=_colour(asked, arm), label=arm)
    for number, load in enumerate(loads):
        axes.plot([], [], MARKERS[number % len(MARKERS)], color="0.6", label=load)
    axes.axvline(1, color="0.5", linewidth=0.8)
    if metric == "blame":
        axes.set_xscale("log")
    _ratio_axis(axes)
    axes.set_xlabel(f"{metric}, ratio to the plain host")
    axes.set_ylabel("mean latency, ratio to the plain host")
    axes.legend(fontsize=7)
    return figure
