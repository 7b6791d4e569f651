"""The paper's Figure 3, how many vCPUs of a workload wait while others are ready, from records."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click
from pydantic import TypeAdapter

from dasec.lab.kit.bench import record_name

from ..plan.testbed import Shapes
from .markdown import markdown_table
from .occasions import Occasions, occasions

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST = 13
"""Waiting vCPUs of 16: of occasions with more than that the paper tells the part (section 2)."""

KEPT, PICTURE = "waiting.json", "waiting.png"


@dataclass(frozen=True, slots=True)
class Seen:
    """The occasions in all runs of an arm: with anybody ready, and with one that requests wait for."""

    any: Occasions
    serving: Occasions


Waiting = Mapping[str, Mapping[str, Seen]]
"""Of each cell and arm whose runs left records."""

_WAITING = TypeAdapter(dict[str, dict[str, Seen]])


def publish_waiting(experiment: Shapes, folder: Path) -> None:
    """The table, and beside it a file and a picture, if the folder has records of this experiment."""
    found: dict[str, dict[str, Seen]] = {}
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
    """How often somebody waited while others were ready, or while one was that requests wait for; and how
    often nearly all did then."""
    nearly_all = f"then more than {MOST} wait"
    return markdown_table(
        ["", "arm", "looks", "anybody ready", nearly_all, "a serving one ready", nearly_all],
        [
            [cell, arm, str(one.any.looks), *_told(one.any), *_told(one.serving)]
            for cell, by_arm in found.items()
            for arm, one in by_arm.items()
        ],
    )


def draw(found: Waiting) -> Figure:
    """Cumulative, a panel a cell: all occasions, then those with a serving one ready."""
    from .pictures import draw_waiting

    arms = list(dict.fromkeys(arm for by_arm in found.values() for arm in by_arm))
    panels = {cell: {arm: one.any for arm, one in by_arm.items()} for cell, by_arm in found.items()}
    for cell, by_arm in found.items():
        panels[f"{cell}, a serving one ready"] = {arm: one.serving for arm, one in by_arm.items()}
    return draw_waiting(panels, arms)


def _seen(experiment: Shapes, folder: Path) -> Iterator[tuple[str, str, Seen]]:
    for cell in experiment.cells.possible:
        place = folder / "records" / cell.name
        tenants = cell.scenario.tenants
        instances = frozenset(tenant.name for tenant in tenants)
        serving = sorted({name for tenant in tenants for name in tenant.critical})
        for arm in experiment.arms:
            named = (place / record_name(arm, number) for number in range(experiment.repetitions))
            files = [file for file in named if file.exists()]
            seen = Seen(occasions(files, instances), occasions(files, instances, serving))
            if seen.any.looks:
                yield cell.name, arm, seen


def _told(one: Occasions) -> tuple[str, str]:
    most = f"{100 * one.more_than(MOST):.0f} %" if one.total else "–"
    return f"{100 * one.total / one.looks:.0f} %", most
