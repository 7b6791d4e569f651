"""The report of a folder of results, with its pictures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import click

from dasec.errors import ExitStatus, Refusal
from dasec.lab.kit.arms import CONTROL, NONE

from ...plan.cells import Cell, Cells, Wish, cells_of
from ...plan.loads import STEP
from ...results.analysis import summarise
from ...results.store import Asked, Store, WishT
from .plots import draw, draw_settling
from .report import report
from .sensitivity import draw_sensitivity
from .settling import Course, courses


def publish(store: Store[Wish], known: Asked[Wish]) -> None:
    """Write report.md and what it shows."""
    publish_cells(store, known.wish, cells_of(known.wish), known.host)


def publish_cells(store: Store[WishT], wish: Wish, cells: Cells, host: Mapping[str, object]) -> None:
    """The same of cells that another experiment has made, whose store may hold a wish of its own."""
    done = store.done()
    found = [summarise(cell, done, wish.arms) for cell in cells.possible]
    summaries = [one for one in found if one]
    if not summaries:
        raise Refusal(ExitStatus.FAILED, f"{store.experiment}: {store.folder}: no block is finished yet")
    pictures = draw(wish, summaries, store.folder)
    pictures = (*pictures, *draw_sensitivity(wish, summaries, store.folder))
    steps = _courses(wish, cells.possible, store)
    if steps:
        pictures = (*pictures, draw_settling(steps, wish, store.folder))
    page = store.folder / "report.md"
    text = report(wish, summaries, cells.impossible, host, pictures, steps)
    page.write_text(text, encoding="utf-8")
    click.echo(f"report: {page}")


def _courses(wish: Wish, cells: Sequence[Cell], store: Store[WishT]) -> tuple[Course, ...]:
    """What the records of the load `step` tell, where they were kept."""
    arms = [arm for arm in wish.arms if arm not in (NONE, CONTROL)]
    return tuple(
        one
        for cell in cells
        if cell.load == STEP
        for one in courses(store.folder / "records" / cell.name, arms, cell.scenario.tenants[0].critical)
    )
