"""Who holds which CPUs: the state between two allocations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import NamedTuple

from .take import CpuPlace

WHOLE = 1000
"""The millicores of a CPU."""


class CpuClass(StrEnum):
    """What a workload needs of CPUs: C2, C1 (WYSIWYG, section IV-B), and rKube's strict."""

    SHARED = "shared"
    EXCLUSIVE = "exclusive"
    WHOLE = "whole"


class Principle(StrEnum):
    """What becomes of an exclusive amount for which so few CPUs are not there: refuse it, or spread it over
    more (WYSIWYG, section IV-B3)."""

    HARD = "hard"
    BEST_EFFORT = "best-effort"


class Ask(NamedTuple):
    """So much for that workload."""

    name: str
    millicores: int
    cpu_class: CpuClass

    @property
    def reserved_millicores(self) -> int:
        """What others cannot have: whole CPUs are reserved whole."""
        return _up(self.millicores) * WHOLE if self.cpu_class is CpuClass.WHOLE else self.millicores

    @property
    def quota_millicores(self) -> int | None:
        """The limit beside the cpuset; None where the cpuset limits enough. A quota on whole CPUs would only
        stop what nobody else could use (kubernetes #70585)."""
        return None if self.reserved_millicores % WHOLE == 0 and self.is_apart else self.millicores

    @property
    def is_apart(self) -> bool:
        """Has it CPUs of its own?"""
        return self.cpu_class is not CpuClass.SHARED

    @property
    def visible(self) -> int:
        """How many CPUs it should see, if it is apart."""
        return _up(self.millicores)


class Grant(NamedTuple):
    """What was given for an ask: CPUs of its own, and millicores of others. Neither for those who share."""

    ask: Ask
    exclusive: frozenset[int] = frozenset()
    parts: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True)
class Reservations:
    """All CPUs that may be given, where each is, and who holds what.

    `apart` says that the rest of the system has CPUs elsewhere (rKube's reserved set). Without that the pool
    is its home, too, and is never empty.
    """

    places: Mapping[int, CpuPlace]
    grants: Mapping[str, Grant] = field(default_factory=dict)
    apart: bool = False

    @cached_property
    def exclusive(self) -> frozenset[int]:
        """P1: each has one holder."""
        return frozenset(cpu for grant in self.grants.values() for cpu in grant.exclusive)

    @cached_property
    def used_parts(self) -> Mapping[int, int]:
        """P2: the millicores given away of each CPU of which anything was given."""
        used: dict[int, int] = {}
        for grant in self.grants.values():
            for cpu, millicores in grant.parts:
                used[cpu] = used.get(cpu, 0) + millicores
        return used

    @cached_property
    def pool(self) -> frozenset[int]:
        """P3: what nobody holds."""
        return frozenset(self.places) - self.exclusive - self.used_parts.keys()

    @property
    def free_millicores(self) -> int:
        """What nobody asked for."""
        return len(self.places) * WHOLE - sum(each.ask.reserved_millicores for each in self.grants.values())

    @property
    def needs_pool(self) -> bool:
        """Must a CPU stay in the pool?"""
        return not self.apart or any(not each.ask.is_apart for each in self.grants.values())

    def cpus_of(self, name: str) -> frozenset[int]:
        """The cpuset of a workload. Those who share have all that is in no other's cpuset alone."""
        grant = self.grants[name]
        if grant.ask.is_apart:
            return grant.exclusive.union(cpu for cpu, _ in grant.parts)
        return self.shared

    @property
    def shared(self) -> frozenset[int]:
        """The cpuset of all who share: P2 and P3."""
        return self.pool.union(self.used_parts)


def _up(millicores: int) -> int:
    """CPUs that hold so much."""
    return -(-millicores // WHOLE)
