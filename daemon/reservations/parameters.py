"""What a person asked to be reserved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import NamedTuple

from ..model import Period
from .grants import Ask, CpuClass, Principle


class Booking(NamedTuple):
    """So much for each workload whose name this pattern matches."""

    pattern: str
    millicores: int
    cpu_class: CpuClass


@dataclass(frozen=True, slots=True)
class ReservationParameters:
    """All that was asked for, the first pattern counts. `apart`: the rest of the system has CPUs elsewhere,
    so that all of these may be given away. `by_themselves`: the millicores that all who ask for them
    themselves may have together."""

    asks: tuple[Booking, ...] = ()
    principle: Principle = Principle.HARD
    apart: bool = False
    by_themselves: int = 0

    def own_asks_of(self, period: Period) -> Sequence[Ask]:
        """What workloads with threads ask for themselves, where nobody else has said anything of them."""
        wishes = ((each.name, each.wish) for each in period.workloads if each.vcpus and each.wish is not None)
        return [
            Ask(name, wish.millicores, CpuClass(wish.cpu_class))
            for name, wish in wishes
            if not any(fnmatchcase(name, one.pattern) for one in self.asks)
        ]

    def asks_of(self, period: Period) -> Sequence[Ask]:
        """What is asked for each workload that has threads, in the order of the configuration."""
        named = [each.name for each in period.workloads if each.vcpus]
        found: dict[str, Ask] = {}
        for one in self.asks:
            for name in named:
                if fnmatchcase(name, one.pattern):
                    found.setdefault(name, Ask(name, one.millicores, one.cpu_class))
        return list(found.values())
