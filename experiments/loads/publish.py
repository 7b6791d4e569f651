"""The report of a folder of results, with its pictures."""

from __future__ import annotations

from collections.abc import Sequence

import click

from dasec.demo.arms import CONTROL, NONE
from dasec.exits import ExitStatus, Refusal

from ..suite.analysis import summarise
from ..suite.store import Asked, Store
from .catalogue import STEP
from .cells import Cell, Wish, cells_of
from .plots import draw, draw_settling
from .report import report
from .sensitivity import draw_sensitivity
from .settling import Course, courses


def publish(store: Store[Wish], known: Asked[Wish]) -> None:
    """Write report.md and what it shows."""
    done = store.done()
    cells = cells_of(known.wish)
    found = [summarise(cell, done, known.wish.arms) for cell in cells.possible]
    summaries = [one for one in found if one]
    if not summaries:
        raise Refusal(ExitStatus.FAILED, f"loads: {store.folder}: no block is finished yet")
    pictures = draw(known.wish, summaries, store.folder)
    pictures = (*pictures, *draw_sensitivity(known.wish, summaries, store.folder))
    steps = _courses(known.wish, cells.possible, store)
    if steps:
        pictures = (*pictures, draw_settling(steps, known.wish, store.folder))
    page = store.folder / "report.md"
    text = report(known.wish, summaries, cells.impossible, known.host, pictures, steps)
    page.write_text(text, encoding="utf-8")
    click.echo(f"report: {page}")


def _courses(wish: Wish, cells: Sequence[Cell], store: Store[Wish]) -> tuple[Course, ...]:
    """What the records of the load `step` tell, where they were kept."""
    arms = [arm for arm in wish.arms if arm not in (NONE, CONTROL)]
    return tuple(
        one
        for cell in cells
        if cell.load == STEP
        for one in courses(store.folder / "records" / cell.name, arms, cell.scenario.tenants[0].critical)
    )
