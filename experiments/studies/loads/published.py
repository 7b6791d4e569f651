"""The picture of the ways to be fair, from results/."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from dasec.lab.demo.plot import COLOURS
from dasec.lab.kit.arms import CONTROL

from ...plan.cells import Cell
from ...plan.oracle import ORACLE
from ...results.analysis import JUDGED, Summary
from .kept import MODES, kept, mean_of_all

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PICTURE = "modes.png"
SHOWN = {"plain host again (A/A)": CONTROL, **MODES, "oracle": ORACLE}
LOOKS = dict(zip(SHOWN, zip("|osD^", COLOURS[1:], strict=False), strict=False))
"""A marker and a colour for each."""

APART = 0.16
MARKS = (0.25, 0.35, 0.5, 0.7, 1, 1.4, 2)


def draw(summaries: Sequence[Summary[Cell]], folder: Path) -> None:
    """A panel for each latency, a row for each load, the last one the mean of all."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 6.5), dpi=100, layout="constrained")
    panels = figure.subplots(1, len(JUDGED), sharey=True)
    for metric, axes in zip(JUDGED, panels, strict=True):
        _panel(axes, summaries, metric)
    rows = [*(one.cell.load for one in summaries), "geometric mean"]
    panels[0].set_yticks(range(len(rows)), rows)
    panels[0].invert_yaxis()
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(SHOWN), fontsize=9)
    figure.savefig(folder / PICTURE, format="png")


def _panel(axes: Axes, summaries: Sequence[Summary[Cell]], metric: str) -> None:
    for number, (name, arm) in enumerate(SHOWN.items()):
        marker, colour = LOOKS[name]
        above = APART * (number - (len(SHOWN) - 1) / 2)
        found = [one.arms[arm].ratios[metric] for one in summaries]
        at = [row + above for row in range(len(summaries) + 1)]
        for effect, place in zip(found, at, strict=False):
            axes.plot([effect.low, effect.high], [place] * 2, color=colour, linewidth=1.5)
        middles = [*(effect.ratio for effect in found), mean_of_all(summaries, arm, metric)]
        axes.plot(middles, at, marker, color=colour, markersize=6, label=name)
    axes.axvline(1, color="0.4", linewidth=0.8)
    axes.axhline(len(summaries) - 0.5, color="0.4", linewidth=0.8)
    axes.set_xscale("log")
    axes.set_xticks(MARKS, [f"{mark:g}" for mark in MARKS])
    axes.minorticks_off()
    axes.grid(visible=True, axis="x", color="0.9")
    axes.set_title(f"{metric} latency over the plain host's, 95 % intervals; left is better", fontsize=10)


def publish() -> None:
    """Draw it."""
    draw(kept("fairness").summaries(), Path(__file__).resolve().parent)
