"""The report of a folder of results, with its picture."""

from __future__ import annotations

import click

from dasec.errors import ExitStatus, Refusal

from ...results.store import Asked, Store
from .analysis import summarise
from .choice import EXPERIMENT
from .plots import draw
from .report import report
from .wish import Wish


def publish(store: Store[Wish], known: Asked[Wish]) -> None:
    """Write report.md and what it shows."""
    done = store.done()
    if not done:
        raise Refusal(ExitStatus.FAILED, f"{EXPERIMENT}: {store.folder}: no block is finished yet")
    found = summarise(done, known.wish.cores)
    page = store.folder / "report.md"
    page.write_text(report(found, known, draw(found, store.folder)), encoding="utf-8")
    click.echo(page.read_text(encoding="utf-8"))
