"""The tables and the picture of the kept runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import click

from ...results.kept_cells import Kept, Seen
from ...results.markdown import markdown_table
from . import rivals, seeds

HERE = Path(__file__).resolve().parent

KEPT = Kept(
    HERE / "results",
    base="none",
    base_name="plain",
    arms={"none-again": "plain again", "oracle": "EEVDF's oracle", "scx": "`dasec scx`"},
    ours="scx",
    plain="none",
)
"""A guest for each seed."""


DAEMON = replace(
    KEPT,
    results=HERE / "results/daemon",
    arms={"none-again": "plain again", "scx": "`dasec scx`", "scx:critical": "the daemon on it"},
)


ALONE = replace(KEPT, results=HERE / "results/alone")
"""The same services while their VMs' background hardly ever wants a CPU; with other arrivals."""


def without_background() -> Iterator[tuple[str, Mapping[str, Seen], Mapping[str, Seen]]]:
    """The cells that were run without background, too: with it, and without."""
    beside = {_point(name): runs for name, runs in KEPT.cells()}
    for name, runs in ALONE.cells():
        yield _point(name), beside[_point(name)], runs


def _point(cell: str) -> str:
    """Without how busy the CPUs are. Arrivals differ, too: they are drawn by the name."""
    return cell.rpartition("-u")[0]


def alone_table() -> str:
    """What is left of a latency when there is no background: over the plain kernel's with it."""
    head = [
        "cell",
        "plain: mean, p99 ms",
        "`dasec scx`",
        "plain, no background",
        "`dasec scx`, no background",
    ]
    rows = []
    for name, beside, alone in without_background():
        plain = beside["none"]
        over = (beside["scx"], alone["none"], alone["scx"])
        rows.append([name, f"{plain.mean_ms:.2f}, {plain.p99_ms:.1f}", *(one.over(plain) for one in over)])
    return markdown_table(head, rows)


def publish() -> None:
    """Print and draw them."""
    click.echo(seeds.table(seeds.cells(KEPT)))
    seeds.draw(KEPT, KEPT.results / "p99.png")
    click.echo(f"\n{DAEMON.table()}\n\n{alone_table()}")
    for cell, rows in rivals.cells():
        click.echo(f"\nBeside schedulers of others, {cell}:\n\n{rivals.table(rows)}")
    rivals.draw(rivals.KEPT / "rivals.png")
