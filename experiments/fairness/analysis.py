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

from .wish import POLICY, Block, Done

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
    for one in sorted(done, key=lambda one: (one.block.layout, one.block.repetition)):
        for index, tenant in enumerate(one.of(NONE).tenants):
            cores = [one.of(arm).tenants[index].cores for arm in (NONE, CONTROL, POLICY)]
            found.setdefault(_key(one.block, tenant.name), []).append((cores[0], cores[1], cores[2]))
    return tuple(_entitled(key, rows) for key, rows in found.items())


def _key(block: Block, workload: str) -> tuple[str, str, str]:
    return block.contest, block.layout, workload


def _entitled(key: tuple[str, str, str], rows: Sequence[tuple[float, float, float]]) -> Entitled:
    base = [math.sqrt(plain * again) for plain, again, _ in rows]
    return Entitled(
        *key,
        len(rows),
        sum(base) / len(base),
        estimate([again / plain for plain, again, _ in rows]),
        estimate([policy / each for (_, _, policy), each in zip(rows, base, strict=True)]),
    )
