"""The tables and the picture of the kept runs."""

from __future__ import annotations

from pathlib import Path

import click

from ...results.kept_cells import Kept
from . import rivals

HERE = Path(__file__).resolve().parent

KEPT = Kept(
    HERE / "results",
    base="none",
    base_name="plain",
    arms={
        "none-again": "plain again",
        "oracle": "EEVDF's oracle",
        "scx": "`dasec scx`",
        "scx:critical": "the daemon on it",
    },
    ours="scx",
    plain="none",
)


def publish() -> None:
    """Print and draw them."""
    KEPT.publish()
    for cell, rows in rivals.cells():
        click.echo(f"\nBeside schedulers of others, {cell}:\n\n{rivals.table(rows)}")
    rivals.draw(rivals.KEPT / "rivals.png")
