"""WYSIWYG's figures 4a, 4b and 5 by simulation: a table, a picture, raw results.

    python -m experiments.studies.wysiwyg [--hosts 40] [--containers 5000] [--offered 1.5] [--seeds 2]

Half a minute on one core, no root; three minutes for each of `--hosts 12500 --containers 500000`.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import click

from .fleet import Container, Placement, containers, fleet
from .published import PARTS, PICTURE, RUNS, Row, draw, table

SETTLED = 1.0
"""Average lives until the fleet is full."""


def rows(
    parts: Sequence[float], hosts: int, count: int, offered: float, seeds: int, told: Callable[[int], None]
) -> Iterator[Row]:
    """Every part, placement and seed; each container that arrives is told."""
    for part in parts:
        for placement in Placement:
            for seed in range(seeds):
                arrivals = containers(seed, count, hosts, offered)
                outcome = fleet(hosts, placement).run(_telling(arrivals, told), part, SETTLED)
                yield Row(part, placement.value, seed, *outcome)


def _telling(arrivals: Iterator[Container], told: Callable[[int], None]) -> Iterator[Container]:
    for container in arrivals:
        yield container
        told(1)


@click.command()
@click.option("--hosts", type=click.IntRange(min=1), default=40, show_default=True)
@click.option("--containers", "count", type=click.IntRange(min=100), default=5000, show_default=True)
@click.option("--offered", type=click.FloatRange(0.1, 10), default=1.5, show_default=True)
@click.option("--seeds", type=click.IntRange(min=1), default=2, show_default=True)
@click.option("--part", "parts", type=click.FloatRange(0, 1), multiple=True, default=PARTS, show_default=True)
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), help="For runs.csv and figure.png.")
def command(
    hosts: int, count: int, offered: float, seeds: int, parts: tuple[float, ...], out: Path | None
) -> None:
    """Simulate, and print the table."""
    length = len(parts) * len(Placement) * seeds * count
    with click.progressbar(length=length, file=sys.stderr, label="containers") as bar:
        found = list(rows(parts, hosts, count, offered, seeds, bar.update))
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
