"""The result as a picture: each situation's latencies beside each other, and the ratios with their noise."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING

from ..kit.arms import CONTROL, NONE
from ..kit.ratios import Estimate
from ..kit.results import ALL, Measured
from ..load_tool import merged, percentile_curve
from .lines import JUDGED, Line

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOURS = ("#000000", "#999999", "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
"""Okabe and Ito's palette, which colour-blind readers can tell apart; the default black, its control grey."""

DASHES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1)), (0, (1, 1)), (0, (7, 3)))
PERCENTILES = tuple(100 * (1 - 10 ** (-step / 20)) for step in range(61))
"""0 to 99.9, evenly in nines: the tail gets as much room as the middle."""

TITLE_LETTERS = 24
"""Of a line: so many have room above a panel of four."""

NINES = {0.0: "0", 0.301: "50", 1.0: "90", 2.0: "99", 3.0: "99.9"}
RATIOS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.8, 0.9, 1, 1.1, 1.2, 1.5, 2, 3, 5, 10, 20, 50, 100)
"""Where the axis of ratios may have a mark."""

FEWER_RATIOS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1, 1.5, 2, 3, 5, 10, 20, 50, 100)
WIDE = 6
"""An axis whose ends are further apart than this factor has these fewer: there is no room for all."""

NS_PER_MS = 1e6
CURVES_IN, RATIOS_IN, LINE_IN = 4.5, 3.0, 0.4
"""Heights in inches: of the curves, of the ratios at least, and of each line there, whose name takes two."""


def draw(situations: Sequence[str], measured: Sequence[Measured], lines: Sequence[Line], path: Path) -> None:
    """Write the PNG."""
    from matplotlib.figure import Figure

    heights_in = CURVES_IN, max(RATIOS_IN, LINE_IN * len(lines))
    figure = Figure(figsize=(11, sum(heights_in)), dpi=110, layout="constrained")
    above, below = figure.subfigures(2, 1, squeeze=False, height_ratios=heights_in)[:, 0]
    above.suptitle("Latency from the scheduled arrival, all repetitions together", fontsize=11)
    panels = above.subplots(1, len(measured), squeeze=False)[0]
    for axes, name, one in zip(panels, situations, measured, strict=True):
        _draw_percentiles(axes, name, one)
    arms = panels[0].get_legend_handles_labels()
    above.legend(*arms, loc="outside lower center", ncols=len(measured[0].arms), fontsize=8)
    below.suptitle("Over the plain host's, with 95 % intervals; left of 1 is better", fontsize=11)
    for number, axes in enumerate(below.subplots(1, len(JUDGED), sharey=True)):
        _draw_ratios(axes, lines, number)
    figure.savefig(path, format="png")


def _draw_percentiles(axes: Axes, name: str, measured: Measured) -> None:
    for index, arm in enumerate(measured.arms):
        curve = [
            value / NS_PER_MS
            for value in percentile_curve(merged(measured.histograms(arm, ALL)).hdr, PERCENTILES)
        ]
        nines = [step / 20 for step in range(len(curve))]
        axes.plot(
            nines, curve, color=_colour(index), linestyle=_dash(index), label=label_of(arm), linewidth=1.6
        )
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter("{x:g}")
    axes.set_xticks(list(NINES), list(NINES.values()))
    axes.set_xlabel("percentile of requests (%)")
    axes.set_ylabel("latency (ms)")
    axes.set_title(fill(name, TITLE_LETTERS), fontsize=10)
    axes.grid(visible=True, which="both", color="0.9")


def _draw_ratios(axes: Axes, lines: Sequence[Line], number: int) -> None:
    axes.axvline(1, color="0.5", linewidth=0.8)
    for position, line in enumerate(reversed(lines)):
        _draw_one(axes, line.noise[number], position - 0.15, COLOURS[1])
        _draw_one(axes, line.effect[number], position + 0.15, COLOURS[2])
        dots = line.repetitions[number]
        axes.plot(dots, [position + 0.3] * len(dots), "o", color=COLOURS[2], alpha=0.4, markersize=3)
    axes.set_xscale("log")
    axes.set_xticks(marks(*axes.get_xlim()))
    axes.xaxis.set_major_formatter("{x:g}")
    axes.minorticks_off()
    axes.set_yticks(range(len(lines)), [f"{line.situation}\n{line.policy}" for line in reversed(lines)])
    axes.set_ylim(-0.5, len(lines) - 0.4)
    axes.set_title(f"{JUDGED[number]}: policy (blue), plain host again (grey)", fontsize=10)
    axes.grid(visible=True, axis="x", color="0.9")


def _draw_one(axes: Axes, found: Estimate, height: float, colour: str) -> None:
    low, high = found.ratio - found.low, min(found.high, 10 * found.ratio) - found.ratio
    axes.errorbar(found.ratio, height, xerr=[[low], [high]], fmt="D", color=colour, capsize=4, markersize=5)


def marks(low: float, high: float) -> list[float]:
    """Of an axis of ratios between these ends."""
    return [one for one in (RATIOS if high < WIDE * low else FEWER_RATIOS) if low <= one <= high]


def label_of(arm: str) -> str:
    """An arm as a legend names it."""
    return {NONE: "none (plain host)", CONTROL: "none again (A/A)"}.get(arm, arm)


def _colour(index: int) -> str:
    """An arm's."""
    return COLOURS[index % len(COLOURS)]


def _dash(index: int) -> str | tuple[int, tuple[int, ...]]:
    """An arm's."""
    return DASHES[index % len(DASHES)]
