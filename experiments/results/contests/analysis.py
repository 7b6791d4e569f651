"""From finished blocks to what each workload got of what it is due; nothing here measures.

On the plain host a workload ran twice in each repetition: the geometric mean of both is the base, and what
differs between these two is chance (A/A). It is *due* what its neutral weights entitle it to (claims.py), or
the base where that is less: what it lacks without us is not because of us, and what it has beyond its
entitlement is somebody else's. Where there is no entitlement to compute, it is due the base.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from dasec.lab.kit.arms import CONTROL, NONE
from dasec.lab.kit.layout import GroupLayout
from dasec.lab.kit.ratios import Estimate, estimate

from ...plan.contests import CONTESTS, POLICY
from ..store import Done
from .claims import entitled

ALLOWED = 0.02
"""By how much a workload may miss what it is due."""


class Kept(StrEnum):
    """Whether a workload got what it is due."""

    KEPT = "kept"
    LOST = "LOST"
    OPEN = "open"


@dataclass(frozen=True, slots=True)
class Entitled:
    """One workload of one contest: its cores by its weights and on the plain host; what it got of them."""

    contest: str
    layout: str
    workload: str
    repetitions: int
    entitlement: float | None
    cores: float
    control: Estimate
    policy: Estimate
    due: Estimate

    @property
    def kept(self) -> Kept:
        """By the whole interval."""
        if self.due.low >= 1 - ALLOWED:
            return Kept.KEPT
        return Kept.LOST if self.due.high < 1 - ALLOWED else Kept.OPEN


@dataclass(frozen=True, slots=True)
class _Row:
    """One repetition, in cores."""

    plain: float
    again: float
    policy: float

    @property
    def base(self) -> float:
        return math.sqrt(self.plain * self.again)


def summarise(done: Sequence[Done], cores: int) -> tuple[Entitled, ...]:
    """Every workload of every contest that was measured, on so many cores."""
    found: list[Entitled] = []
    contests = list(CONTESTS)
    cells = {one.cell: contest_and_layout(one.cell) for one in done}
    for name, (contest, layout) in sorted(
        cells.items(), key=lambda each: (each[1][1], contests.index(each[1][0]))
    ):
        mine = [one for one in done if one.cell == name]
        claims = entitled(CONTESTS[contest].scenario(cores), GroupLayout(layout))
        for index, tenant in enumerate(mine[0].of(NONE).tenants):
            rows = [
                _Row(*(one.of(arm).tenants[index].cores for arm in (NONE, CONTROL, POLICY))) for one in mine
            ]
            found.append(
                _entitled((contest, layout), tenant.name, claims[tenant.name] if claims else None, rows)
            )
    return tuple(found)


def contest_and_layout(cell: str) -> tuple[str, str]:
    """`fanout-flat`: the contest fanout in layout flat."""
    contest, _, layout = cell.rpartition("-")
    return contest, layout


def _entitled(
    where: tuple[str, str], workload: str, entitlement: float | None, rows: Sequence[_Row]
) -> Entitled:
    most = math.inf if entitlement is None else entitlement
    return Entitled(
        *where,
        workload,
        len(rows),
        entitlement,
        sum(row.base for row in rows) / len(rows),
        estimate([row.again / row.plain for row in rows]),
        estimate([row.policy / row.base for row in rows]),
        estimate([row.policy / min(row.base, most) for row in rows]),
    )
