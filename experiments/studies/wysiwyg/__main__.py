"""WYSIWYG's figures 4a, 4b and 5 by simulation: a table, a picture, raw results.

    python -m experiments.studies.wysiwyg [--hosts 40] [--containers 5000] [--offered 1.5] [--seeds 2]

Four minutes on one core, no root.
"""

from __future__ import annotations

import csv
import statistics
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import click

from .fleet import Outcome, Placement, containers, fleet

PARTS = tuple(tenth / 10 for tenth in range(1, 11))
SETTLED = 1.0
"""Average lives until the fleet is full."""


class Row(NamedTuple):
    """One run."""

    part: float
    placement: str
    seed: int
    shared: float
    refused: int
    exclusive: int
    choice_us: float


def rows(hosts: int, count: int, offered: float, seeds: int) -> Iterator[Row]:
    """Every part, placement and seed."""
    for part in PARTS:
        for placement in Placement:
            for seed in range(seeds):
                arrivals = containers(seed, count, hosts, offered)
                outcome: Outcome = fleet(hosts, placement).run(arrivals, part, SETTLED)
                yield Row(part, placement.value, seed, *outcome)


def shared(row: Row) -> float:
    """Figure 4a, in percent."""
    return 100 * row.shared


def refused(row: Row) -> float:
    """Figure 4b, in percent."""
    return 100 * row.refused / row.exclusive


def choice(row: Row) -> float:
    """Figure 5, in microseconds."""
    return row.choice_us


def table(found: Sequence[Row]) -> Iterator[str]:
    """Means over the seeds."""
    names = list(Placement)
    yield (
        "| exclusive | shared CPU time: "
        + " | ".join(names)
        + " | refused: "
        + " | ".join(names)
        + " | choice, µs: "
        + " | ".join(names)
        + " |"
    )
    yield "|" + "---|" * (1 + 3 * len(names))
    for part in PARTS:
        mine = [[row for row in found if (row.part, row.placement) == (part, name)] for name in names]
        shared = [f"{100 * statistics.mean(row.shared for row in each):.1f} %" for each in mine]
        refused = [
            f"{100 * statistics.mean(row.refused / row.exclusive for row in each):.1f} %" for each in mine
        ]
        choice = [f"{statistics.mean(row.choice_us for row in each):.0f}" for each in mine]
        yield f"| {100 * part:.0f} % | " + " | ".join((*shared, *refused, *choice)) + " |"


def draw(found: Sequence[Row], path: Path) -> None:
    """The three figures beside each other."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, 3, figsize=(13, 4), dpi=110, layout="constrained")
    panels = (
        ("4a: exclusive containers' CPU time\non shared CPUs, %", shared),
        ("4b: refused though there was room, %", refused),
        ("5: CPU time of a choice, µs", choice),
    )
    for axis, (title, value) in zip(axes, panels, strict=True):
        for name in Placement:
            heights = [
                statistics.mean(value(row) for row in found if row[:2] == (part, name)) for part in PARTS
            ]
            axis.plot([100 * part for part in PARTS], heights, marker="o", markersize=3, label=name)
        axis.set(title=title, xlabel="containers that are exclusive, %", ylim=(0, None))
    axes[0].legend()
    figure.savefig(path)


@click.command()
@click.option("--hosts", type=click.IntRange(min=1), default=40, show_default=True)
@click.option("--containers", "count", type=click.IntRange(min=100), default=5000, show_default=True)
@click.option("--offered", type=click.FloatRange(0.1, 10), default=1.5, show_default=True)
@click.option("--seeds", type=click.IntRange(min=1), default=2, show_default=True)
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), help="For runs.csv and figure.png.")
def command(hosts: int, count: int, offered: float, seeds: int, out: Path | None) -> None:
    """Simulate, and print the table."""
    found: list[Row] = []
    expected = len(PARTS) * len(Placement) * seeds
    for row in rows(hosts, count, offered, seeds):
        found.append(row)
        if sys.stderr.isatty():
            print(f"\r{len(found)} of {expected} runs", end="", file=sys.stderr, flush=True)
    print("\n".join(table(found)))
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        with (out / "runs.csv").open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(Row._fields)
            writer.writerows(found)
        draw(found, out / "figure.png")


if __name__ == "__main__":
    command()
