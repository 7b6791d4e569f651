"""How fast the testbed's CPUs are. Pure; the guest imports it, too."""

from __future__ import annotations

from ..counted.cpus import Cpus

MIPS = 500
"""Of each CPU; half of it would take half the time, and the kernel's own work would weigh twice as much."""

TURN = 5000
"""Instructions: of 500 MIPS 10 us, in which every CPU has its turn, however many there are."""


def cpus_for(services: int, turn: int = TURN, topology: str = "") -> Cpus:
    """So many CPUs and one that measures."""
    return Cpus(services, MIPS, turn, topology)
