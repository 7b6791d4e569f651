"""The paper's Figure 3, how many vCPUs of a workload wait while others are ready, from records."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click
from pydantic import TypeAdapter

from dasec.demo.run import record_name

from ..suite.markdown import markdown_table
from ..suite.occasions import Occasions, occasions
from .experiment import Experiment

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST = 13
"""Waiting vCPUs of 16: of occasions with more than that the paper tells the part (section 2)."""

KEPT, PICTURE = "waiting.json", "waiting.png"

Waiting = Mapping[str, Mapping[str, Occasions]]
"""Of each cell and arm whose runs left records."""

_WAITING = TypeAdapter(dict[str, dict[str, Occasions]])


def publish_waiting(experiment: Experiment, folder: Path) -> None:
    """The table, and beside it a file and a picture, if the folder has records of this experiment."""
    found: dict[str, dict[str, Occasions]] = {}
    for cell, arm, seen in _seen(experiment, folder):
        found.setdefault(cell, {})[arm] = seen
    if not found:
        return
    (folder / KEPT).write_bytes(_WAITING.dump_json(found, indent=1) + b"\n")
    draw(found).savefig(folder / PICTURE)
    click.echo(f"\n{waiting_table(found)}\n")


def read(file: Path) -> Waiting:
    """What was kept there."""
    return _WAITING.validate_json(file.read_bytes())


def waiting_table(found: Waiting) -> str:
    """How often somebody waited while others were ready, how many then, and how often nearly all."""
    arms = dict.fromkeys(arm for by_arm in found.values() for arm in by_arm)
    rows = [[arm, *(_told(by_arm.get(arm)) for by_arm in found.values())] for arm in arms]
    return markdown_table(["", *found], rows)


def draw(found: Waiting) -> Figure:
    """Cumulative, a panel a cell."""
    from ..apps.pictures import draw_waiting

    return draw_waiting(found, list(dict.fromkeys(arm for by_arm in found.values() for arm in by_arm)))


def _seen(experiment: Experiment, folder: Path) -> Iterator[tuple[str, str, Occasions]]:
    wish = experiment.wish
    for cell in experiment.cells.possible:
        place = folder / "records" / cell.name
        names = frozenset(tenant.name for tenant in cell.scenario.tenants)
        for arm in wish.arms:
            files = [place / record_name(arm, number) for number in range(wish.repetitions)]
            found = occasions((file for file in files if file.exists()), names)
            if found.looks:
                yield cell.name, arm, found


def _told(one: Occasions | None) -> str:
    if one is None:
        return "no record"
    often = f"{100 * one.total / one.looks:.0f} % of {one.looks} looks"
    if not one.total:
        return often
    return f"{often}; {one.mean:.1f} wait; more than {MOST} in {100 * one.more_than(MOST):.0f} %"
