"""The kept runs on sixteen CPUs: each server with one VM, which has the host to itself, and with sixteen."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from dasec.lab.kit.arms import NONE

from ...results.analysis import JUDGED
from ...results.effects import percent
from ...results.markdown import markdown_table
from .published import ARMS, RESULTS, Cell, cells, over_plain

FOLDER = RESULTS / "sixteen"
PRESENT = FOLDER / "present"
"""Run again by a later rule of our own scheduler."""

LOOKING = ("critical", "oracle")
"""Arms with a daemon."""


@dataclass(frozen=True, slots=True)
class Host:
    """One server, with one VM and with many."""

    alone: Cell
    full: Cell

    @property
    def name(self) -> str:
        return self.full.file.removesuffix("-sixteen")

    def times_alone(self, arm: str, metric: str) -> float:
        """Latency of the full host over that of one VM on the plain kernel."""
        return self.full.ms(arm, metric) / self.alone.plain_ms(metric)

    def late(self, arm: str) -> tuple[int, int]:
        """Looks that the daemon left out on the full host, being late, and all of them, from its start on."""
        told = [run.decided for run in self.full.runs(arm)]
        missed = sum(one["late periods"] for one in told)
        return missed, missed + sum(one["periods"] for one in told)


def hosts(folder: Path = FOLDER) -> Iterator[Host]:
    """By file."""
    for cell in cells(folder):
        fewest = min(len(block.of(NONE).tenants) for block in cell.blocks)
        alone = tuple(block for block in cell.blocks if len(block.of(NONE).tenants) == fewest)
        yield Host(
            Cell(cell.file, alone), Cell(cell.file, tuple(one for one in cell.blocks if one not in alone))
        )


def table(found: tuple[Host, ...]) -> str:
    """A row for each server: how the full host compares with one VM, and the arms over the plain kernel."""
    head = ["server", "busy", "one VM: mean, p99 ms", "sixteen", "times", *ARMS.values()]
    return markdown_table(head, [list(_row(one)) for one in found])


def alone(found: tuple[Host, ...]) -> str:
    """What the arms are where one VM has the host to itself."""
    head = ["server", "busy", *ARMS.values()]
    rows = [
        [one.name, percent(one.alone.busy), *(over_plain(one.alone, arm) for arm in ARMS)] for one in found
    ]
    return markdown_table(head, rows)


def late(found: tuple[Host, ...]) -> str:
    """How often the daemon was late on the full host."""
    head = ["server", *(ARMS[arm] for arm in LOOKING)]
    rows = [[one.name, *(" of ".join(map(str, one.late(arm))) for arm in LOOKING)] for one in found]
    return markdown_table(head, rows)


def _row(one: Host) -> Iterator[str]:
    yield one.name
    yield percent(one.full.busy)
    for cell in (one.alone, one.full):
        yield f"{cell.plain_ms('mean'):.2f}, {cell.plain_ms('p99'):.1f}"
    yield ", ".join(f"{one.times_alone(NONE, metric):.1f}" for metric in JUDGED)
    for arm in ARMS:
        yield over_plain(one.full, arm)
