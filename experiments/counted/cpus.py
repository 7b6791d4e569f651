"""The guest's CPUs: the first ones for the services, one more for the daemon and whatever measures. Pure; the
guest imports it, too."""

from __future__ import annotations

from dataclasses import dataclass

MIPS_OF_ALL = 1000
"""`-icount shift=0` is a virtual nanosecond an instruction, whichever CPU executes it."""

ITERATION_INSTRUCTIONS = 203
"""Of the load tool's loop in its build for such guests (experiments/load/src/burn.c)."""


@dataclass(frozen=True, slots=True)
class Cpus:
    """So many for the services, and one more."""

    services: int

    @property
    def total(self) -> int:
        """Of the guest."""
        return self.services + 1

    @property
    def measuring(self) -> int:
        """The number of the one that no service uses."""
        return self.services

    @property
    def mips_each(self) -> float:
        """Each CPU's speed: equal turns (turns.c) divide the instructions equally."""
        return MIPS_OF_ALL / self.total

    @property
    def iterations_per_us(self) -> float:
        """Of the load tool's work: the same work in every guest."""
        return self.mips_each / ITERATION_INSTRUCTIONS
