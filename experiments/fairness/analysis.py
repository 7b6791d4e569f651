"""From finished blocks to what each workload got of its entitlement; nothing here measures.

A workload's entitlement is what it gets on the plain host, where it ran twice in each repetition: the
geometric mean of both is the base. What differs between these two is chance (A/A).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from dasec.demo.arms import CONTROL, NONE
from dasec.demo.statistics import Estimate, estimate

from ..suite.store import Done
from .scenarios import CONTESTS
from .wish import POLICY, Cell

ALLOWED = 0.02
"""By how much a workload may miss its entitlement, or exceed it at another's expense."""


class Kept(StrEnum):
    """Whether a workload got its entitlement."""

    KEPT = "kept"
    LOST = "LOST"
    OPEN = "open"


@dataclass(frozen=True, slots=True)
class Entitled:
    """One workload of one contest: its cores on the plain host, and what it got of them."""

    contest: str
    layout: str
    workload: str
    repetitions: int
    cores: float
    control: Estimate
    policy: Estimate

    @property
    def kept(self) -> Kept:
        """By the whole interval."""
        if self.policy.low >= 1 - ALLOWED:
            return Kept.KEPT
        return Kept.LOST if self.policy.high < 1 - ALLOWED else Kept.OPEN


def summarise(done: Sequence[Done]) -> tuple[Entitled, ...]:
    """Every workload of every contest that was measured."""
    found: dict[tuple[str, str, str], list[tuple[float, float, float]]] = {}
    contests = list(CONTESTS)
    for one in sorted(done, key=lambda one: (one.cell, one.repetition)):
        cell = Cell.named(one.cell)
        for index, tenant in enumerate(one.of(NONE).tenants):
            cores = [one.of(arm).tenants[index].cores for arm in (NONE, CONTROL, POLICY)]
            key = cell.contest, cell.layout, tenant.name
            found.setdefault(key, []).append((cores[0], cores[1], cores[2]))
    ordered = sorted(found.items(), key=lambda item: (item[0][1], contests.index(item[0][0])))
    return tuple(_entitled(key, rows) for key, rows in ordered)


def _entitled(key: tuple[str, str, str], rows: Sequence[tuple[float, float, float]]) -> Entitled:
    base = [math.sqrt(plain * again) for plain, again, _ in rows]
    return Entitled(
        *key,
        len(rows),
        sum(base) / len(base),
        estimate([again / plain for plain, again, _ in rows]),
        estimate([policy / each for (_, _, policy), each in zip(rows, base, strict=True)]),
    )
