"""What each experiment file gave here, as pictures and printed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from dasec.lab.demo.plot import COLOURS, RATIOS
from dasec.lab.kit.ratios import estimate

from ...results.analysis import PACE
from . import pooled
from .here import FOLDER, METRICS, Line, columns, effects, kept_runs, lines, surroundings, table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

POOLED_PICTURE = "there.png"
DPI = 90


def drawn(compared: Sequence[Line]) -> Figure:
    """Each arm beside the plain host, with its interval; a panel a metric, and pace in the first."""
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    shown, arms = columns(compared), list(dict.fromkeys(one["arm"] for one in compared))
    paced = [
        column for column in shown if any(name == PACE for name, _ in effects(compared, column, arms[0]))
    ]
    made = Figure(figsize=(10, 1.2 + 0.17 * len(shown) * len(arms)), layout="constrained")
    panels = made.subplots(1, len(METRICS), sharey=True)
    for metric, axes in zip(METRICS, panels, strict=True):
        names = (metric, PACE) if paced and metric == METRICS[0] else (metric,)
        for place, column in enumerate(shown):
            for number, arm in enumerate(arms):
                for name, one in effects(compared, column, arm):
                    if name in names:
                        _bar(axes, one, place + 0.8 * number / len(arms), _colour(number))
        _ratio_axis(axes, f"{' or '.join(names)} over none")
    titles = [f"{title}: {PACE}" if column in paced else title for column, title in shown.items()]
    panels[0].set_yticks([place + 0.3 for place in range(len(shown))], titles, fontsize=7)
    panels[0].invert_yaxis()
    handles = [Line2D([], [], color=_colour(number), label=arm) for number, arm in enumerate(arms)]
    made.legend(handles=handles, loc="outside lower center", ncols=len(arms), fontsize=7)
    return made


def drawn_pooled() -> Figure:
    """The same of all figures together, a panel a metric."""
    from matplotlib.figure import Figure

    found = pooled.pooled(pooled.all_blocks())
    made = Figure(figsize=(10, 2.4), layout="constrained")
    panels = made.subplots(1, len(pooled.METRICS), sharey=True)
    for metric, axes in zip(pooled.METRICS, panels, strict=True):
        for y, each in enumerate(found.values()):
            one = estimate(each[metric])
            axes.plot([one.low, one.high], [y, y], color=COLOURS[2])
            axes.plot(one.ratio, y, "D", color=COLOURS[2], markersize=4)
        axes.axvline(1, color="0.5", linewidth=0.8)
        axes.set(title=f"{metric} over both plain runs")
        axes.grid(visible=True, axis="x", color="0.9")
    panels[0].set_yticks(range(len(found)), list(found))
    return made


def _ratio_axis(axes: Axes, title: str) -> None:
    axes.set(title=title, xscale="log")
    axes.axvline(1, color="0.5", linewidth=0.8)
    axes.set_xticks([ratio for ratio in RATIOS if axes.get_xlim()[0] <= ratio <= axes.get_xlim()[1]])
    axes.xaxis.set_major_formatter("{x:g}")
    axes.minorticks_off()
    axes.grid(visible=True, axis="x", color="0.9")


def _colour(number: int) -> str:
    """Of an arm; the palette's first is the plain host's."""
    return COLOURS[(number + 1) % len(COLOURS)]


def _bar(axes: Axes, one: Line, y: float, colour: str) -> None:
    axes.plot([float(one["low"]), float(one["high"])], [y, y], color=colour)
    axes.plot(float(one["over_none"]), y, "D", color=colour, markersize=4)


def publish() -> None:
    """Print and draw them."""
    for each in kept_runs():
        drawn(lines(each, "comparisons")).savefig(FOLDER / f"{each}.png", dpi=DPI)
        click.echo(f"{each}: {surroundings(each)}\n\n{table(each)}\n")
    drawn_pooled().savefig(FOLDER / POOLED_PICTURE, dpi=DPI)
    click.echo(f"{pooled.pooled_table()}\n\n{pooled.without_disturbed()}")
