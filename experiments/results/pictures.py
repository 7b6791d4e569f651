"""What a page shows as pictures; each is PNG in memory, to stand in the page itself."""

from __future__ import annotations

import io
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dasec.lab.demo.plot import COLOURS, DASHES, NINES, NS_PER_MS, PERCENTILES, RATIOS, label_of
from dasec.lab.load_tool import merged, percentile_curve

from ..plan.points import Cell
from .analysis import JUDGED, PACE, THROUGHPUT
from .folder import Results
from .occasions import Occasions
from .rows import ALL, Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ACROSS = 3
"""Panels in a row."""

UNITS = {"mean": (NS_PER_MS, "mean latency (ms)"), "p99": (NS_PER_MS, "p99 latency (ms)")}


@dataclass(frozen=True, slots=True)
class Picture:
    """With what it shows."""

    title: str
    png: bytes


def draw(results: Results, found: Mapping[str, Mapping[str, Occasions]]) -> Iterator[Picture]:
    """All for which there are numbers. `found` has the occasions of each cell and arm."""
    arms = results.experiment.arms
    shown = _shown(results.rows)
    if not shown:
        return
    for metric, (unit, label) in {**UNITS, THROUGHPUT: (1.0, "done a second, one instance")}.items():
        rows = [row for row in shown if any(row.values(arm, metric) for arm in row.arms)]
        if rows:
            yield Picture(
                f"{label} against threads a core", _png(_along_ratio(rows, arms, metric, unit, label))
            )
    yield Picture("Ratio to the plain host; below 1 is better", _png(_beside_plain(shown, arms)))
    served = [row for row in shown if row.values(row.arms[0], "mean")]
    if served:
        yield Picture("Latency by percentile, all repetitions together", _png(_percentiles(served, arms)))
    if found:
        yield Picture("Threads that wait while others are ready, cumulative", _png(draw_waiting(found, arms)))


def _shown(rows: Sequence[Row[Cell]]) -> list[Row[Cell]]:
    """The parts where a cell has several, else the whole."""
    split = {row.cell.name for row in rows if row.part != ALL}
    return [row for row in rows if row.part != ALL or row.cell.name not in split]


def _called(row: Row[Cell]) -> str:
    return row.cell.mix if row.part == ALL else f"{row.cell.mix}: {row.part}"


def _along_ratio(
    rows: Sequence[Row[Cell]], arms: Sequence[str], metric: str, unit: float, label: str
) -> Figure:
    groups: dict[str, list[Row[Cell]]] = {}
    for row in rows:
        cell = row.cell
        factor = "" if cell.rate_factor == 1 else f", rates × {cell.rate_factor:g}"
        groups.setdefault(f"{_called(row)} ({cell.layout}{factor})", []).append(row)
    figure, panels = _panels(len(groups))
    for (name, mine), axes in zip(groups.items(), panels, strict=False):
        mine.sort(key=lambda row: row.cell.ratio)
        for number, arm in enumerate(arms):
            points = [(row.cell.ratio, row.absolute(arm, metric)) for row in mine if arm in row.arms]
            known = [(x, one) for x, one in points if one]
            if known:
                axes.plot(
                    [x for x, _ in known],
                    [one.ratio / unit for _, one in known],
                    marker="o",
                    markersize=3,
                    color=COLOURS[number % len(COLOURS)],
                    linestyle=DASHES[number % len(DASHES)],
                    label=label_of(arm),
                )
        axes.set_title(name, fontsize=9)
        axes.set_xlabel("threads a core")
        axes.set_ylabel(label, fontsize=8)
        axes.set_ylim(bottom=0)
        axes.grid(visible=True, color="0.9")
        axes.legend(fontsize=6)
    return figure


def _beside_plain(rows: Sequence[Row[Cell]], arms: Sequence[str]) -> Figure:
    """Each cell and arm a bar of uncertainty."""
    metrics = [name for name in (*JUDGED, PACE) if any(name in row.summary.spread for row in rows)]
    figure, panels = _panels(len(metrics), height=1.0 + 0.16 * len(rows) * len(arms))
    for metric, axes in zip(metrics, panels, strict=False):
        for place, row in enumerate(rows):
            for number, arm in enumerate(arms):
                found = row.summary.arms[arm].ratios.get(metric) if arm in row.summary.arms else None
                if found:
                    y, colour = place + 0.8 * number / len(arms), COLOURS[number % len(COLOURS)]
                    ends = [found.low, found.high] if math.isfinite(found.high) else [found.ratio] * 2
                    axes.plot(ends, [y, y], color=colour)
                    axes.plot(found.ratio, y, "D", color=colour, markersize=4)
        axes.axvline(1, color="0.5", linewidth=0.8)
        axes.set_xscale("log")
        axes.set_xticks([ratio for ratio in RATIOS if axes.get_xlim()[0] <= ratio <= axes.get_xlim()[1]])
        axes.xaxis.set_major_formatter("{x:g}")
        axes.minorticks_off()
        axes.set_yticks(range(len(rows)), [f"{_called(row)}\n{row.cell.name}" for row in rows], fontsize=6)
        axes.invert_yaxis()
        axes.set_title(metric, fontsize=9)
        axes.grid(visible=True, axis="x", color="0.9")
    _legend(figure, arms[1:], 1)
    return figure


def _percentiles(rows: Sequence[Row[Cell]], arms: Sequence[str]) -> Figure:
    figure, panels = _panels(len(rows))
    for row, axes in zip(rows, panels, strict=False):
        for number, arm in enumerate(arms):
            if arm not in row.arms:
                continue
            hdrs = [
                one.latencies.hdr
                for block in row.blocks
                for one in block.of(arm).tenants
                if one.latencies.count
            ]
            if hdrs:
                curve = percentile_curve(merged(hdrs).hdr, PERCENTILES)
                axes.plot(
                    [step / 20 for step in range(len(curve))],
                    [value / NS_PER_MS for value in curve],
                    color=COLOURS[number % len(COLOURS)],
                    linestyle=DASHES[number % len(DASHES)],
                )
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter("{x:g}")
        axes.set_xticks(list(NINES), list(NINES.values()))
        axes.set_title(f"{_called(row)}\n{row.cell.name}", fontsize=8)
        axes.set_xlabel("percentile")
        axes.set_ylabel("ms")
        axes.grid(visible=True, color="0.9")
    _legend(figure, arms, 0)
    return figure


def draw_waiting(found: Mapping[str, Mapping[str, Occasions]], arms: Sequence[str]) -> Figure:
    """How many threads of each cell waited, cumulative over its occasions, as the paper's Figure 3."""
    figure, panels = _panels(len(found))
    for (cell, by_arm), axes in zip(found.items(), panels, strict=False):
        for arm, one in by_arm.items():
            number = arms.index(arm)
            curve = one.cumulative()
            axes.step(
                [waiting for waiting, _ in curve],
                [100 * part for _, part in curve],
                where="post",
                color=COLOURS[number % len(COLOURS)],
                linestyle=DASHES[number % len(DASHES)],
                label=f"{arm} ({one.total} of {one.looks} looks)",
            )
        axes.set_title(cell, fontsize=8)
        axes.set_xlabel("waiting threads")
        axes.set_ylabel("% of occasions")
        axes.grid(visible=True, color="0.9")
        axes.legend(fontsize=6)
    return figure


def _panels(number: int, height: float = 3.2) -> tuple[Figure, Iterator[Axes]]:
    from matplotlib.figure import Figure

    columns = min(ACROSS, number)
    lines = math.ceil(number / columns)
    figure = Figure(figsize=(4.6 * columns, max(3.2, height) * lines), dpi=90, layout="constrained")
    grid = figure.subplots(lines, columns, squeeze=False)
    for axes in grid.flat[number:]:
        axes.set_axis_off()
    return figure, iter(grid.flat)


def _legend(figure: Figure, arms: Sequence[str], first: int) -> None:
    """One for all panels."""
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], color=COLOURS[number % len(COLOURS)], label=label_of(arm))
        for number, arm in enumerate(arms, first)
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=5, fontsize=7)


def _png(figure: Figure) -> bytes:

    target = io.BytesIO()
    figure.savefig(target, format="png")
    return target.getvalue()
