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
    so that all of these may be given away."""

    asks: tuple[Booking, ...] = ()
    principle: Principle = Principle.HARD
    apart: bool = False

    def asks_of(self, period: Period) -> Sequence[Ask]:
        """What each workload that has threads asks for."""
        named = [each.name for each in period.workloads if each.vcpus]
        found = (
            (name, next((one for one in self.asks if fnmatchcase(name, one.pattern)), None)) for name in named
        )
        return [Ask(name, one.millicores, one.cpu_class) for name, one in found if one is not None]
