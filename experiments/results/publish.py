"""The report of a folder of results, with its pictures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import click

from dasec.errors import ExitStatus, Refusal
from dasec.lab.kit.arms import CONTROL, NONE

from ..plan.cells import Cell
from ..plan.loads import STEP
from ..plan.terms import Terms
from .analysis import summarise
from .plots import draw, draw_settling
from .report import report
from .sensitivity import draw_sensitivity
from .settling import Course, courses
from .store import Store, WishT


def publish_cells(store: Store[WishT], terms: Terms, host: Mapping[str, object]) -> None:
    """Write report.md and what it shows."""
    done, cells = store.done(), [cell for cell in terms.cells.possible if isinstance(cell, Cell)]
    found = [summarise(cell, done, terms.arms) for cell in cells]
    summaries = [one for one in found if one]
    if not summaries:
        raise Refusal(ExitStatus.FAILED, f"{store.folder}: no block is finished yet")
    pictures = draw(terms, summaries, store.folder)
    pictures = (*pictures, *draw_sensitivity(terms, summaries, store.folder))
    steps = _courses(terms, cells, store)
    if steps:
        pictures = (*pictures, draw_settling(steps, terms, store.folder))
    page = store.folder / "report.md"
    text = report(terms, summaries, terms.cells.impossible, host, pictures, steps)
    page.write_text(text, encoding="utf-8")
    click.echo(f"report: {page}")


def _courses(terms: Terms, cells: Sequence[Cell], store: Store[WishT]) -> tuple[Course, ...]:
    """What the records of the load `step` tell, where they were kept."""
    arms = [arm for arm in terms.arms if arm not in (NONE, CONTROL)]
    return tuple(
        one
        for cell in cells
        if cell.load == STEP
        for one in courses(store.folder / "records" / cell.name, arms, cell.scenario.tenants[0].critical)
    )
