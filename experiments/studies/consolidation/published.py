"""The paper's figures over the consolidation ratio from the kept runs: tables, and a picture of each file."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from dasec.lab.kit.arms import CONTROL, NONE, WATCHED

from ...results.analysis import JUDGED
from ...results.effects import percent
from ...results.markdown import markdown_table
from ...results.store import done_in
from ..servers import published as servers
from ..servers.published import Cell, serving

RESULTS = Path(__file__).resolve().parent / "results"
CPUS = 10
"""Of the host, in each file."""

RATIO = re.compile(r"-r([\d.]+)-u")
"""Threads that serve over CPUs, in a cell's name."""

ARMS: Mapping[str, tuple[str, str]] = {
    NONE: ("plain", "#999999"),
    CONTROL: ("plain again", "#CCCCCC"),
    "critical": ("`critical`", "#0072B2"),
    "scx": ("`dasec scx`", "#D55E00"),
}
"""Names and colours."""

OVER = [arm for arm in ARMS if arm != NONE]
LOOKED_AT = "a daemon that changes nothing"

FURTHER = ("seeds", "sixteen", "sixteen/again", "sixteen/watched", "sixteen/rebuilt", "sixteen/glibc")
"""Silo at the highest ratio with other seeds; masstree in VMs of 16 threads, once more, watched, built anew,
and with another allocator."""


@dataclass(frozen=True, slots=True)
class Point:
    """A host at one consolidation ratio."""

    cell: Cell

    @property
    def ratio(self) -> float:
        """Threads that serve over CPUs."""
        return float(RATIO.findall(self.cell.blocks[0].cell)[-1])

    def ms(self, arm: str, metric: str) -> float:
        """Mean of the VMs'."""
        (run,) = self.cell.runs(arm)
        values = [one.value(metric) for one in serving(run)]
        return sum(values) / len(values) / 1e6

    def busy(self, arm: str) -> float:
        """Part of the CPUs that VMs used."""
        return sum(one.cores for run in self.cell.runs(arm) for one in run.tenants) / CPUS


def points(file: Path) -> tuple[Point, ...]:
    """By their ratio."""
    blocks = done_in(file.read_text(encoding="utf-8").splitlines())
    return tuple(sorted((Point(Cell(file.stem, (block,))) for block in blocks), key=lambda one: one.ratio))


def files(results: Path = RESULTS) -> Mapping[str, tuple[Point, ...]]:
    """Each application that was run."""
    return {file.stem: points(file) for file in sorted(results.glob("*.jsonl"))}


def further(folder: str) -> tuple[Point, ...]:
    """Of guests in one of FURTHER, in the order of their files."""
    return tuple(point for file in sorted((RESULTS / folder).glob("*.jsonl")) for point in points(file))


def table(found: Sequence[Point]) -> str:
    """Figures 1 and 7: latency, and each arm over the plain kernel."""
    names = {arm: ARMS[arm][0] for arm in OVER} | {WATCHED: LOOKED_AT}
    arms = [arm for arm in names if all(one.cell.runs(arm) for one in found)]
    head = ["ratio", "busy", "plain: mean, p99 ms", *(names[arm] for arm in arms)]
    return markdown_table(head, [list(_row(one, arms)) for one in found])


def _row(one: Point, arms: Sequence[str]) -> Iterator[str]:
    yield f"{one.ratio:.1f}"
    yield percent(one.busy(NONE))
    yield f"{one.ms(NONE, 'mean'):.2f}, {one.ms(NONE, 'p99'):.1f}"
    yield from (servers.over_plain(one.cell, arm) for arm in arms)


def busiest(found: Mapping[str, Sequence[Point]]) -> str:
    """Table 1: CPU use at the highest ratio."""
    head = ["application", *(name for name, _ in ARMS.values())]
    rows = [[name, *(percent(at[-1].busy(arm), 1) for arm in ARMS)] for name, at in found.items()]
    return markdown_table(head, rows)


def beside(results: Path = RESULTS / "beside") -> Iterator[str]:
    """Figure 16: latency, and the batch work that was done."""
    found = tuple(servers.cells(results))
    yield servers.table(found)
    yield servers.batch(found)


def draw(name: str, found: Sequence[Point], path: Path) -> None:
    """Mean and p99 in ms over the ratio, each a line for each arm."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.6), dpi=110, layout="constrained")
    for axis, metric in zip(figure.subplots(1, 2), JUDGED, strict=True):
        for arm, (said, colour) in ARMS.items():
            values = [one.ms(arm, metric) for one in found]
            axis.plot([one.ratio for one in found], values, "o-", color=colour, label=said.strip("`"))
        axis.set_ylim(bottom=0)
        axis.set(xlabel="consolidation ratio", ylabel="ms", title=f"{name}: {metric}")
        axis.grid(axis="y", alpha=0.3)
    figure.axes[0].legend(loc="lower left")
    figure.savefig(path)


def publish() -> None:
    """Print and draw them."""
    found = files()
    for name, at in found.items():
        click.echo(f"{name}\n\n{table(at)}\n")
        draw(name, at, RESULTS / f"{name}.png")
    for folder in FURTHER:
        click.echo(f"{folder}\n\n{table(further(folder))}\n")
    click.echo(busiest(found))
    for one in beside():
        click.echo(one)
