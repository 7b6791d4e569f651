"""Those that give way on the same CPUs give way alike, so that none of them loses time to another one.

Two that compute all the time on the same CPUs, one lowered to a seventh and the other to a quarter, would
both soon be lowered no more: the first is behind (late.py), and once it is let alone the second. So all that
give way and want to run most of the time have the same part of their neutral weight there, that of the one
that gives way least (docs/decisions/0072-alike.md).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ..model import VcpuId
from .crowd import Cpus
from .scores import FULL
from .weights import Claims

STEPS = (143, 179, 224, 280, 350, 437, 547, 683, 854, FULL)
"""A seventh (`weight_ratio`), and up from there by a quarter at a time: scores change in every period, and
nobody shall be written for it."""


@dataclass(slots=True)
class Weighing:
    """What one workload's vCPUs that were judged shall weigh, by their place in `ids`. `busy`: those that
    want to run most of the time, and where they may; `exact`: places that are written if anything is off."""

    ids: Sequence[VcpuId]
    claims: Claims
    wanted: list[int]
    deadband_percent: int
    busy: Mapping[VcpuId, Cpus]
    exact: set[int] = field(default_factory=set)


def align(weighings: Sequence[Weighing]) -> None:
    """Make those alike that may run on the same CPUs."""
    places: dict[Cpus, list[tuple[Weighing, int]]] = {}
    for weighing in weighings:
        for at, vcpu in enumerate(weighing.ids if weighing.busy else ()):
            if vcpu in weighing.busy and weighing.claims.scores[at] * 2 < FULL:
                places.setdefault(weighing.busy[vcpu], []).append((weighing, at))
    for those in places.values():
        part = _step([weighing.wanted[at] * FULL // weighing.claims.neutral[at] for weighing, at in those])
        for weighing, at in those:
            weighing.wanted[at] = weighing.claims.neutral[at] * part // FULL
            weighing.exact.add(at)


def _step(parts: Sequence[int]) -> int:
    return min([step for step in STEPS if step >= max(parts)], default=FULL)
