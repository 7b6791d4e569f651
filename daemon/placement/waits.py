"""What a host would wait with another load.

So many vCPUs want a core, on average; of these some run and some wait. How many wait is a queue with as many
servers as the host has cores (Sakasegawa 1977, the usual approximation of Erlang's formula). What a host
waits more than that now (workloads that are pinned together, load in bursts, a scheduler that balances late),
it keeps: less load does not mend it, more load makes it worse.
"""

from __future__ import annotations

from math import sqrt

from .fleet import FleetHost

HALVINGS = 50
"""Bisection to a billionth of any host's cores; no measured quantity."""

LEAST_IDLE = 0.01
"""Below that a host counts as full, which bounds how much worse what it waits beyond the queue can get
(decision 0053)."""


def wait_with(host: FleetHost, vcpus: int, runnable_cores: float) -> float:
    """Part of the time (0 to 1) that workloads of the host would wait, if they had so many vCPUs of which so
    many want a core on average."""
    now = queued_part(host.cores, host.vcpus, host.runnable_cores)
    then = queued_part(host.cores, vcpus, runnable_cores)
    beyond = max(0.0, host.wait - now)
    worse = _idle(host.cores, host.runnable_cores, now) / _idle(host.cores, runnable_cores, then)
    return min(1.0, then + beyond * max(1.0, worse))


def queued_part(cores: int, vcpus: int, runnable_cores: float) -> float:
    """Part of those who want a core that waits, 0 to 1, if any core serves any vCPU."""
    if runnable_cores <= 0:
        return 0.0
    low, high = 0.0, min(float(cores), runnable_cores)
    for _ in range(HALVINGS):
        running = (low + high) / 2
        low, high = (running, high) if _queue(cores, running) < runnable_cores else (low, running)
    part = 1 - low / runnable_cores
    # Never do more wait than there are vCPUs beyond the cores.
    return min(part, max(0, vcpus - cores) / runnable_cores, 1.0)


def _queue(cores: int, running: float) -> float:
    """How many are in the queue or served, if so many are served."""
    busy = running / cores
    if busy >= 1:
        return float("inf")
    steepness: float = sqrt(2 * (cores + 1)) - 1
    waiting: float = busy**steepness / (cores * (1 - busy))
    return running * (1 + waiting)


def _idle(cores: int, runnable_cores: float, waiting: float) -> float:
    return max(LEAST_IDLE, 1 - runnable_cores * (1 - waiting) / cores)
