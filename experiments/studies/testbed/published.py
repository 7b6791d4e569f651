"""The pictures of docs/findings.md from results/."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from dasec.lab.kit.arms import CONTROL, NONE

from ...results.waiting import draw as draw_waiting
from ...results.waiting import read as waiting
from .findings import (
    CAUSES,
    METRICS,
    NAMES,
    PINNED,
    POLICIES_BY_CAUSE,
    RESULTS,
    WAITING,
    Values,
    growth,
    only,
    over_none,
    runs,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

DOCS = Path(__file__).resolve().parents[3] / "docs"
RATIOS = (0.25, 0.5, 0.7, 1, 1.5, 2, 4)
FREE, FIXED = "#4477aa", "#cc6677"
ARMS = {
    **{"critical": "#228833", "oracle": "#222222", "dasec": "#cc6677", "dasec:tsa": "#ee99aa"},
    **{"dasec:rla": "#dd7733", "dasec:rcr": "#aa3377", "static": "#bbbbbb", "bvt": "#66ccee"},
    **{"parties": "#ccbb44", "critical:yield_latency_percent=100": "#99cc77", "watched": "#aaaaff"},
}


def draw(folder: Path) -> None:
    """findings-NAME.png of each experiment that was measured."""
    for name in NAMES:
        _save(_picture(name), folder / f"findings-{name}.png")
    for name in WAITING:
        _save(draw_waiting(waiting(RESULTS / f"{name}.json")), folder / f"findings-{name}.png")


def _picture(name: str) -> Figure:
    if name in CAUSES:
        return draw_growth(growth(name))
    if name in POLICIES_BY_CAUSE:
        return draw_causes({load: over_none(found) for load, found in runs(name).items()})
    return draw_policies(over_none(only(name)))


def draw_growth(causes: Mapping[str, Mapping[float, Values]]) -> Figure:
    """Of each cause mean and p99 by ratio, threads free to move and pinned."""
    free = [cause for cause in causes if not cause.endswith(PINNED)]
    figure, rows = _panels(len(METRICS), len(free), (2.6 * len(free), 5), sharey="row")
    for metric, row in zip(METRICS, rows, strict=True):
        for cause, axes in zip(free, row, strict=True):
            for name, colour, label in ((cause, FREE, "free"), (cause + PINNED, FIXED, "pinned")):
                at = causes.get(name, {})
                both = [values[metric] for values in at.values()]
                axes.plot(list(at), [statistics.fmean(each) for each in both], color=colour, label=label)
                axes.plot(list(at), both, ".", color=colour)
            axes.set(
                title=cause, yscale="log", ylabel=f"{metric}, ms", xlabel="ratio", xticks=list(causes[cause])
            )
            axes.yaxis.set_major_formatter("{x:g}")
    rows[0][0].legend(fontsize=8)
    return figure


def draw_policies(found: Mapping[float, Mapping[str, Values]]) -> Figure:
    """Of each arm mean and p99 over the plain kernel, by ratio; in grey how far that differs from itself."""
    figure, (panels,) = _panels(1, len(METRICS), (11, 4), sharey="none")
    for metric, axes in zip(METRICS, panels, strict=True):
        _policies(axes, found, metric)
        axes.legend(fontsize=7, ncols=2)
    return figure


def draw_causes(causes: Mapping[str, Mapping[float, Mapping[str, Values]]]) -> Figure:
    """The same of several loads, one a column."""
    figure, rows = _panels(len(METRICS), len(causes), (2.8 * len(causes), 6), sharey="row")
    for metric, row in zip(METRICS, rows, strict=True):
        for (cause, found), axes in zip(causes.items(), row, strict=True):
            _policies(axes, found, metric)
            axes.set_title(cause.removesuffix(PINNED), fontsize=9)
    rows[0][0].legend(fontsize=7)
    return figure


def _policies(axes: Axes, found: Mapping[float, Mapping[str, Values]], metric: str) -> None:
    noise = [found[at][CONTROL][metric] for at in found]
    low = [min(1, *each) for each in noise]
    axes.fill_between(list(found), low, [max(1, *each) for each in noise], color="0.85", label="A/A")
    for arm in (one for one in ARMS if any(one in arms for arms in found.values())):
        at = [ratio for ratio in found if arm in found[ratio]]
        told = [statistics.geometric_mean(found[ratio][arm][metric]) for ratio in at]
        axes.plot(at, told, ".-", color=ARMS[arm], label=arm)
    axes.axhline(1, color="0.3", lw=1)
    axes.set(yscale="log", xlabel="ratio", ylabel=f"{metric} over {NONE}", xticks=list(found))
    axes.set_yticks(RATIOS, [f"{ratio:g}" for ratio in RATIOS])
    axes.minorticks_off()


def _panels(
    rows: int, columns: int, size: tuple[float, float], sharey: Literal["row", "none"]
) -> tuple[Figure, Sequence[Sequence[Axes]]]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, dpi=110, layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False, sharey=sharey)
    return figure, axes.tolist()


def _save(figure: Figure, file: Path) -> None:

    figure.savefig(file)


def publish() -> None:
    """Draw them."""
    draw(DOCS)
