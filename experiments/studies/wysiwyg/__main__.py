"""WYSIWYG's figures 4a, 4b and 5 by simulation: a table, a picture, raw results.

    python -m experiments.studies.wysiwyg [--hosts 40] [--containers 5000] [--offered 1.5] [--seeds 2]

Four minutes on one core, no root.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator
from pathlib import Path

import click

from .fleet import Outcome, Placement, containers, fleet
from .published import PARTS, PICTURE, RUNS, Row, draw, table

SETTLED = 1.0
"""Average lives until the fleet is full."""


def rows(hosts: int, count: int, offered: float, seeds: int) -> Iterator[Row]:
    """Every part, placement and seed."""
    for part in PARTS:
        for placement in Placement:
            for seed in range(seeds):
                arrivals = containers(seed, count, hosts, offered)
                outcome: Outcome = fleet(hosts, placement).run(arrivals, part, SETTLED)
                yield Row(part, placement.value, seed, *outcome)


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
    print(table(found))
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        with (out / RUNS).open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(Row._fields)
            writer.writerows(found)
        draw(found, out / PICTURE)


if __name__ == "__main__":
    command()
