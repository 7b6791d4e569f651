"""How fast the testbed's CPUs are. Pure; the guest imports it, too."""

from __future__ import annotations

from dataclasses import replace

from .cpus import Cpus

MIPS = 500
"""Of each CPU; half of it would take half the time, and the kernel's own work would weigh twice as much."""

TURN = 5000
"""Instructions: of 500 MIPS 10 us, in which every CPU has its turn, however many there are."""

SHORTEST_TURN, LONGEST_TURN = 500, 100_000
"""A shorter one costs more than what is done in it; after a longer one a CPU stops for 0.2 ms."""


Topology = tuple[int, int, int]
"""Sockets, cores in each, threads in each of those."""


def cpus_for(services: int, turn: int = TURN, topology: Topology | None = None, *, asking: int = 0) -> Cpus:
    """So many CPUs, one that measures, and those of clients; without a topology all in one socket. ValueError
    if that is of another number of CPUs."""
    one_socket = Cpus(services, MIPS, turn, asking=asking)
    if topology is None:
        return one_socket
    sockets, cores, threads = topology
    if (product := sockets * cores * threads) != one_socket.total:
        clients = f", and {asking} for clients" if asking else ""
        wanted = f"{services} and one that measures{clients}"
        raise ValueError(f"sockets, cores, threads make {product} CPUs, not {wanted}")
    return replace(one_socket, topology=f"sockets={sockets},cores={cores},threads={threads}")
