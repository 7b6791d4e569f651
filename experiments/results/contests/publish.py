"""The report of a folder of contests, with its picture."""

from __future__ import annotations

from collections.abc import Mapping

import click

from dasec.errors import ExitStatus, Refusal

from ...plan.contests import Contests
from ..store import Store, WishT
from .analysis import summarise
from .page import page
from .picture import draw


def publish_contests(store: Store[WishT], asked: Contests, host: Mapping[str, object]) -> None:
    """Write report.md and what it shows."""
    done = store.done()
    if not done:
        raise Refusal(ExitStatus.FAILED, f"{store.folder}: no block is finished yet")
    found = summarise(done, asked.cpus)
    file = store.folder / "report.md"
    file.write_text(page(found, asked, host, draw(found, store.folder)), encoding="utf-8")
    click.echo(f"report: {file}")
