"""The result as a picture: how long requests took, and the ratios with their noise."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ..load_tool import merged, percentile_curve
from .arms import CONTROL, NONE
from .comparison import JUDGED, Comparison, verdict_on
from .results import ALL, Measured

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOURS = ("#000000", "#999999", "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
"""Okabe and Ito's palette, which colour-blind readers can tell apart; the default black, its control grey."""

DASHES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1)), (0, (1, 1)), (0, (7, 3)))
PERCENTILES = tuple(100 * (1 - 10 ** (-step / 20)) for step in range(61))
"""0 to 99.9, evenly in nines: the tail gets as much room as the middle."""

NINES = {0.0: "0", 0.301: "50", 1.0: "90", 2.0: "99", 3.0: "99.9"}
RATIOS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.8, 0.9, 1, 1.1, 1.2, 1.5, 2, 3, 5, 10, 20, 50, 100)
"""Where the axis of ratios may have a mark."""

NS_PER_MS = 1e6


def draw(measured: Measured, comparisons: tuple[Comparison, ...], path: Path) -> None:
    """Write the PNG."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure = pyplot.figure(figsize=(11, 8.5), dpi=110, layout="constrained")
    above, below = figure.subfigures(2, 1, squeeze=False)[:, 0]
    above.suptitle("Latency from the scheduled arrival, all repetitions together", fontsize=11)
    for axes, kind in zip(
        above.subplots(1, len(measured.kinds), squeeze=False)[0], measured.kinds, strict=True
    ):
        _draw_percentiles(axes, measured, kind)
    below.suptitle("Ratio to the plain host, all workloads; below 1 is better", fontsize=11)
    for axes, metric in zip(below.subplots(1, len(JUDGED), sharey=True), JUDGED, strict=True):
        _draw_ratios(axes, measured, comparisons, metric)
    figure.savefig(path, format="png")
    pyplot.close(figure)


def _draw_percentiles(axes: Axes, measured: Measured, kind: str) -> None:
    for index, arm in enumerate(measured.arms):
        curve = [
            value / NS_PER_MS
            for value in percentile_curve(merged(measured.histograms(arm, kind)).hdr, PERCENTILES)
        ]
        nines = [step / 20 for step in range(len(curve))]
        axes.plot(
            nines,
            curve,
            color=_colour(index),
            linestyle=DASHES[index % len(DASHES)],
            label=label_of(arm),
            linewidth=1.6,
        )
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter("{x:g}")
    axes.set_xticks(list(NINES), list(NINES.values()))
    axes.set_xlabel("percentile of requests (%)")
    axes.set_ylabel("latency (ms)")
    axes.set_title(f"{kind} ({len(measured.tenants_of(kind))})", fontsize=10)
    axes.grid(visible=True, which="both", color="0.9")
    axes.legend(fontsize=8)


def _draw_ratios(axes: Axes, measured: Measured, comparisons: tuple[Comparison, ...], metric: str) -> None:
    shown = [one for one in comparisons if one.workload == ALL and one.metric == metric]
    spread = shown[0].control_spread
    axes.axhspan(1 / spread, spread, color="0.93", label="worst A/A repetition")
    axes.axhline(1, color="0.5", linewidth=0.8)
    for position, one in enumerate(shown):
        colour = _colour(measured.arms.index(one.arm))
        axes.plot(_spaced(position, len(one.ratios)), one.ratios, "o", color=colour, alpha=0.5, markersize=4)
        low, high = one.estimate.ratio - one.estimate.low, one.estimate.high - one.estimate.ratio
        axes.errorbar(
            position + 0.25,
            one.estimate.ratio,
            yerr=[[low], [high]],
            fmt="D",
            color=colour,
            capsize=5,
            markersize=6,
        )
    axes.set_yscale("log")
    axes.set_yticks([ratio for ratio in RATIOS if axes.get_ylim()[0] <= ratio <= axes.get_ylim()[1]])
    axes.yaxis.set_major_formatter("{x:g}")
    axes.minorticks_off()
    axes.set_xticks(range(len(shown)), [_tick(one.arm, comparisons) for one in shown])
    axes.set_xlim(-0.5, len(shown) - 0.25)
    axes.set_ylabel(f"{metric} latency, policy / plain host")
    axes.set_title(f"{metric}: dot = repetition, diamond = geometric mean with 95 % CI", fontsize=10)
    axes.grid(visible=True, axis="y", color="0.9")
    axes.legend(fontsize=8)


def _spaced(position: int, count: int) -> Sequence[float]:
    """Dots side by side rather than one above the other."""
    return [position - 0.2 + 0.3 * index / max(1, count - 1) for index in range(count)]


def _tick(arm: str, comparisons: tuple[Comparison, ...]) -> str:
    return label_of(arm) if arm == CONTROL else f"{arm}\n{verdict_on(arm, comparisons)}"


def label_of(arm: str) -> str:
    """An arm as a legend names it."""
    return {NONE: "none (plain host)", CONTROL: "none again (A/A)"}.get(arm, arm)


def _colour(index: int) -> str:
    return COLOURS[index % len(COLOURS)]
