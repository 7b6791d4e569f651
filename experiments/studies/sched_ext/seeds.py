"""What every seed of a cell says of our scheduler, beside what was aimed at."""

from __future__ import annotations

import re
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from ...results.kept_cells import Kept, Seen
from ...results.markdown import markdown_table

SEED = re.compile(r"-seed-(\d+)$")


class Ratio(NamedTuple):
    """Mean and p99 over those of the plain run of the same guest."""

    mean: float
    p99: float

    def __str__(self) -> str:
        return f"{self.mean:.2f} / {self.p99:.2f}"


NO_HARM = Ratio(1.03, 1.05)

AIMS = {
    "free: bursts-130-r6": Ratio(0.70, 0.65),
    "idle": Ratio(1.01, 1.02),
    "nested": Ratio(0.36, 0.25),
    "pinned: bursts": Ratio(0.66, 0.62),
    "pinned: straggler": NO_HARM,
    "pinned-causes": NO_HARM,
    "causes": NO_HARM,
    "serving: straggler": NO_HARM,
    "sixteen-busy": Ratio(0.22, 0.20),
    "sixteen-pinned": Ratio(0.74, 0.66),
    "sixteen-serving": Ratio(0.30, 0.35),
}
"""At most, by how a cell's name starts. Of `loads` it is what EEVDF's oracle has in the same guests."""


@dataclass(frozen=True, slots=True)
class Cell:
    """Its runs, a guest for each seed."""

    name: str
    guests: Sequence[Mapping[str, Seen]]

    def each(self, arm: str) -> list[Ratio]:
        """In every guest that has it."""
        return [
            Ratio(runs[arm].mean_ms / runs["none"].mean_ms, runs[arm].p99_ms / runs["none"].p99_ms)
            for runs in self.guests
            if arm in runs
        ]

    def together(self, arm: str) -> Ratio | None:
        """The geometric mean of all guests' ratios."""
        if not (each := self.each(arm)):
            return None
        means, p99s = zip(*each, strict=True)
        return Ratio(statistics.geometric_mean(means), statistics.geometric_mean(p99s))

    @property
    def aim(self) -> Ratio | None:
        """What it is to reach."""
        if self.name.startswith("loads"):
            return self.together("oracle")
        return next((aim for start, aim in AIMS.items() if self.name.startswith(start)), None)

    @property
    def reached(self) -> bool | None:
        """By all guests together, to the two digits that the aim has. None: nothing was aimed at."""
        ours, aim = self.together("scx"), self.aim
        if ours is None or aim is None:
            return None
        return round(ours.mean, 2) <= round(aim.mean, 2) and round(ours.p99, 2) <= round(aim.p99, 2)


def cells(kept: Kept) -> Iterator[Cell]:
    """By name, the guests of each in the order of their seeds."""
    found: dict[str, dict[int, Mapping[str, Seen]]] = {}
    for name, runs in kept.cells():
        file, _, cell = name.partition(": ")
        seed = SEED.search(file)
        guests = found.setdefault(f"{SEED.sub('', file)}: {cell}", {})
        guests[int(seed[1]) if seed else 1] = runs
    for name, guests in sorted(found.items()):
        yield Cell(name, [guests[seed] for seed in sorted(guests)])


def aimed(kept: Kept) -> Iterator[Cell]:
    """Those of which something is told what they are to reach."""
    yield from (cell for cell in cells(kept) if cell.aim)


def table(found: Iterable[Cell]) -> str:
    """A row for each: ratios to the plain kernel, mean / p99."""
    ours = ("`dasec scx`, each seed", "together", "to reach", "")
    head = ["cell", "plain: mean, p99 ms", "plain again", "EEVDF's oracle, each seed", *ours]
    return markdown_table(head, map(_row, found))


def _row(cell: Cell) -> list[str]:
    words = {None: "", True: "reached", False: "missed"}
    mean_ms, p99_ms = (
        statistics.geometric_mean(getattr(runs["none"], name) for runs in cell.guests)
        for name in ("mean_ms", "p99_ms")
    )
    oracle, ours = (", ".join(map(str, cell.each(arm))) or "–" for arm in ("oracle", "scx"))
    told = [cell.together("none-again"), oracle, ours, cell.together("scx"), cell.aim or "–"]
    plain = f"{mean_ms:.2f}, {p99_ms:.1f}"
    return [cell.name.removesuffix("-vm"), plain, *map(str, told), words[cell.reached]]


def draw(kept: Kept, path: Path) -> None:
    """p99 over the plain kernel's: every seed, and what was aimed at."""
    from matplotlib.figure import Figure

    found = list(cells(kept))
    figure = Figure(figsize=(10, 5), dpi=110, layout="constrained")
    axis = figure.subplots()
    aims = [[cell.aim] if cell.aim else [] for cell in found]
    for dots, marker, colour, name in (
        ([cell.each("none-again") for cell in found], ".", "#999999", "plain again, each seed"),
        ([cell.each("oracle") for cell in found], ".", "#009E73", "EEVDF's oracle, each seed"),
        ([cell.each("scx") for cell in found], ".", "#D55E00", "dasec scx, each seed"),
        (aims, "_", "#0072B2", "to reach"),
    ):
        rows, p99s = zip(*((row, dot.p99) for row, each in enumerate(dots) for dot in each), strict=True)
        axis.scatter(rows, p99s, s=80, marker=marker, color=colour, label=name)
    axis.axhline(1, color="#000000", linewidth=0.8)
    names = [cell.name.rpartition("-u")[0] for cell in found]
    axis.set_xticks(range(len(found)), names, fontsize=7, rotation=40, ha="right")
    axis.set_ylabel("p99 over plain's")
    axis.set_ylim(bottom=0)
    figure.legend(loc="outside upper center", ncols=4)
    figure.savefig(path)
