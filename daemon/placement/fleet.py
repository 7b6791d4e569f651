"""A fleet as its recorded numbers show it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from ..reservations import Ask


@dataclass(frozen=True, slots=True)
class Resident:
    """A workload where it is now.

    `running_cores`, `waiting_cores`: how many of its vCPUs run and wait, on average. `blame_cores`: how much
    of the waiting of others falls on it. `ask`: its reservation of CPUs, None if it shares.
    """

    name: str
    vcpus: int
    running_cores: float
    waiting_cores: float
    blame_cores: float
    ask: Ask | None = None
    may_move: bool = True

    @property
    def runnable_cores(self) -> float:
        """How many of its vCPUs want a core, on average."""
        return self.running_cores + self.waiting_cores

    @property
    def wait(self) -> float:
        """Part of the time in which it wants a core that it waits for one, 0 to 1."""
        return self.waiting_cores / self.runnable_cores if self.runnable_cores else 0.0


@dataclass(frozen=True)
class FleetHost:
    """A host: its cores, what its workloads wait (0 to 1, the recorded p90 of ten minutes), and these."""

    name: str
    cores: int
    wait: float
    residents: tuple[Resident, ...]

    @cached_property
    def vcpus(self) -> int:
        """Of all its workloads."""
        return sum(each.vcpus for each in self.residents)

    @cached_property
    def runnable_cores(self) -> float:
        """How many vCPUs want a core, on average."""
        return sum(each.runnable_cores for each in self.residents)

    @property
    def commitment(self) -> float:
        """vCPUs for each core."""
        return self.vcpus / self.cores

    @property
    def free_cores(self) -> float:
        """Cores that nobody runs on or waits for."""
        return max(0.0, self.cores - self.runnable_cores)


def without_port(instance: str) -> str:
    """A host's name as Prometheus has it, without the exporter's port."""
    host, colon, port = instance.rpartition(":")
    return host if colon and port.isdigit() and (":" not in host or host.endswith("]")) else instance


@dataclass(frozen=True, slots=True)
class Lately:
    """What happened before now: (workload, host) for all that were there within a day, and the hosts to or
    from which a workload has come or gone within half an hour."""

    within_a_day: frozenset[tuple[str, str]] = frozenset()
    unsettled: frozenset[str] = frozenset()
