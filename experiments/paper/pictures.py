"""Pictures of what `here.toml` gave: `python -m experiments.paper.pictures`, which prints the tables, too."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from dasec.demo.plot import COLOURS, RATIOS
from dasec.demo.statistics import estimate

from .here import FOLDER, METRICS, POOLED, Line, columns, effects, figures, lines, pooled, pooled_table, table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PICTURE, POOLED_PICTURE = "here.png", "there.png"


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


def draw_pooled(target: Path) -> None:
    """The same as a picture, a panel a metric."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    found = pooled()
    made, panels = pyplot.subplots(1, len(POOLED), figsize=(10, 2.4), sharey=True, layout="constrained")
    for metric, axes in zip(POOLED, panels, strict=True):
        for y, each in enumerate(found.values()):
            one = estimate(each[metric])
            axes.plot([one.low, one.high], [y, y], color=COLOURS[2])
            axes.plot(one.ratio, y, "D", color=COLOURS[2], markersize=4)
        axes.axvline(1, color="0.5", linewidth=0.8)
        axes.set(title=f"{metric} over both plain runs")
        axes.grid(visible=True, axis="x", color="0.9")
    panels[0].set_yticks(range(len(found)), list(found))
    made.savefig(target, dpi=90)
    pyplot.close(made)


def _bar(axes: Axes, one: Line, y: float, colour: str) -> None:
    axes.plot([float(one["low"]), float(one["high"])], [y, y], color=colour)
    axes.plot(float(one["over_none"]), y, "D", color=colour, markersize=4)


if __name__ == "__main__":
    for each in figures():
        draw(each, FOLDER / each / PICTURE)
        print(table(each), end="\n\n")
    draw_pooled(FOLDER / POOLED_PICTURE)
    print(pooled_table())
