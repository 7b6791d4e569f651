"""The guest's CPUs: the first ones for the services, one more for the daemon and whatever measures, and maybe
some for clients. Pure; the guest imports it, too."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

MIPS_OF_ALL = 1000
"""`-icount shift=0` is a virtual nanosecond an instruction, whichever CPU executes it."""

TURN = 10_000
"""Instructions a turn, as turns.c has it if nothing else is asked."""

ITERATION_INSTRUCTIONS = 203
"""Of the load tool's loop in its build for such guests (experiments/load/src/burn.c)."""


@dataclass(frozen=True, slots=True)
class Cpus:
    """So many for the services, one more, and those of clients. Their speed is what QEMU's clock leaves each,
    or as wanted by a slower clock (turns.c)."""

    services: int
    mips_wanted: int | None = None
    turn: int = TURN
    topology: str = ""
    """As QEMU's -smp has it after the number: sockets=2,cores=4,threads=2. Empty: all in one socket."""
    asking: int = 0
    """Of clients alone, after the one that measures; 0: they share that one with the daemon."""

    @property
    def total(self) -> int:
        """Of the guest."""
        return self.services + 1 + self.asking

    @property
    def measuring(self) -> int:
        """The number of the one that no service uses."""
        return self.services

    @property
    def apart(self) -> range:
        """Those that no service uses."""
        return range(self.measuring, self.total)

    @property
    def clients(self) -> range:
        """Where whoever asks is."""
        return self.apart[1:] if self.asking else self.apart

    @property
    def mips_each(self) -> float:
        """Each CPU's speed: equal turns (turns.c) divide the instructions equally."""
        return self.mips_wanted or MIPS_OF_ALL / self.total

    @property
    def per_us(self) -> int:
        """Instructions of all CPUs in a microsecond of the guest's."""
        return MIPS_OF_ALL if self.mips_wanted is None else self.mips_wanted * self.total

    @property
    def round_us(self) -> float:
        """In which each has one turn: how far a wake-up across CPUs may be off."""
        return self.total * self.turn / self.per_us

    @property
    def iterations_per_us(self) -> float:
        """Of the load tool's work: the same work in every guest."""
        return self.mips_each / ITERATION_INSTRUCTIONS


def mask_of(cpus: Iterable[int]) -> str:
    """As taskset takes it."""
    return f"{sum(1 << cpu for cpu in cpus):x}"
