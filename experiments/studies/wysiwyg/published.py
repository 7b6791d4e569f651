"""The table and the picture of the kept runs."""

from __future__ import annotations

import csv
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import click

from ...results.markdown import markdown_table
from .fleet import Placement

RESULTS = Path(__file__).resolve().parent / "results"
RUNS, PICTURE = "runs.csv", "figure.png"
SIZES = "sizes.csv"
"""Single cells with other numbers of hosts, by the same program: `--hosts N --containers 125N --seeds 1`."""

PARTS = tuple(tenth / 10 for tenth in range(1, 11))


class Row(NamedTuple):
    """One run."""

    part: float
    placement: str
    seed: int
    shared: float
    refused: int
    exclusive: int
    choice_us: float


def read(folder: Path) -> tuple[Row, ...]:
    """The runs that are kept there."""
    with (folder / RUNS).open(encoding="utf-8") as file:
        return tuple(
            Row(
                float(line["part"]),
                line["placement"],
                int(line["seed"]),
                float(line["shared"]),
                int(line["refused"]),
                int(line["exclusive"]),
                float(line["choice_us"]),
            )
            for line in csv.DictReader(file)
        )


def sizes_table(folder: Path) -> str:
    """Figures 4a and 4b by the number of hosts: default, optimised, and what that gains."""
    with (folder / SIZES).open(encoding="utf-8") as file:
        lines = list(csv.DictReader(file))
    by_cell: dict[tuple[str, str], dict[str, Mapping[str, str]]] = {}
    for line in lines:
        by_cell.setdefault((line["part"], line["hosts"]), {})[line["placement"]] = line
    rows = []
    for (part, hosts), runs in by_cell.items():
        default, optimised = runs[Placement.DEFAULT], runs[Placement.OPTIMISED]
        on_shared = [100 * float(run["shared"]) for run in (default, optimised)]
        refused = [100 * int(run["refused"]) / int(run["exclusive"]) for run in (default, optimised)]
        rows.append([f"{100 * float(part):.0f} %", hosts])
        rows[-1] += [f"{each:.1f} %" for each in on_shared] + [f"{on_shared[0] - on_shared[1]:.1f}"]
        rows[-1] += [f"{each:.1f} %" for each in refused]
    head = ["exclusive", "hosts", "4a: default", "4a: optimised", "points less", "4b: default"]
    return markdown_table([*head, "4b: optimised"], rows)


def shared(row: Row) -> float:
    """Figure 4a, in percent."""
    return 100 * row.shared


def refused(row: Row) -> float:
    """Figure 4b, in percent."""
    return 100 * row.refused / row.exclusive


def choice(row: Row) -> float:
    """Figure 5, in microseconds."""
    return row.choice_us


def table(found: Sequence[Row]) -> str:
    """Means over the seeds."""
    figures = {
        "shared CPU time": (shared, "{:.1f} %"),
        "refused": (refused, "{:.1f} %"),
        "choice, µs": (choice, "{:.0f}"),
    }
    head = ["exclusive", *(f"{what}: {name}" for what in figures for name in Placement)]
    rows = []
    for part in sorted({row.part for row in found}):
        mine = [[row for row in found if (row.part, row.placement) == (part, name)] for name in Placement]
        told = [
            text.format(statistics.mean(map(value, each)))
            for value, text in figures.values()
            for each in mine
        ]
        rows.append([f"{100 * part:.0f} %", *told])
    return markdown_table(head, rows)


def draw(found: Sequence[Row], path: Path) -> None:
    """The three figures beside each other."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13, 4), dpi=110, layout="constrained")
    axes = figure.subplots(1, 3)
    parts = sorted({row.part for row in found})
    panels = (
        ("4a: exclusive containers' CPU time\non shared CPUs, %", shared),
        ("4b: refused though there was room, %", refused),
        ("5: CPU time of a choice, µs", choice),
    )
    for axis, (title, value) in zip(axes, panels, strict=True):
        for name in Placement:
            heights = [
                statistics.mean(value(row) for row in found if row[:2] == (part, name)) for part in parts
            ]
            axis.plot([100 * part for part in parts], heights, marker="o", markersize=3, label=name)
        axis.set(title=title, xlabel="containers that are exclusive, %", ylim=(0, None))
    axes[0].legend()
    figure.savefig(path)


def publish() -> None:
    """Print and draw them."""
    for folder in (RESULTS, RESULTS / "12500"):
        found = read(folder)
        click.echo(table(found))
        draw(found, folder / PICTURE)
