"""How long the critical threads of each workload made their siblings wait: watched from outside the daemon,
on the plain host just as under a policy, so that it can be compared."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ...bpf.extent import Extent
from ...bpf.wake_edges import open_edges
from ...critical.names import matches
from ...linux import procfs
from ...linux.errors import ThreadGone
from ...model import Level, VcpuId


class Followed(Protocol):
    """A workload whose threads are watched."""

    def threads(self) -> Sequence[tuple[int, int, str]]:
        """Process id, thread id and name of each."""

    @property
    def critical(self) -> tuple[str, ...]:
        """Names of those that requests wait for."""


class BlameWatch:
    """A monitor of who woke whom, for one run after the other."""

    def __init__(self) -> None:
        self._edges = open_edges(Extent(Level.FULL))
        self._critical: list[list[VcpuId]] = []

    @property
    def works(self) -> bool:
        """Can it count here?"""
        return self._edges.level is Level.FULL

    @property
    def note(self) -> str:
        """How it counts, or why it does not."""
        return self._edges.note

    def follow(self, tenants: Sequence[Followed]) -> None:
        """Follow all threads of these workloads and no others."""
        workload_of: dict[VcpuId, int] = {}
        self._critical = [[] for _ in tenants]
        for number, one in enumerate(tenants):
            for pid, tid, name in one.threads():
                try:
                    who = VcpuId(pid, tid, procfs.read_stat(pid, tid).start_ticks)
                except ThreadGone:
                    continue
                workload_of[who] = number
                if any(matches(pattern, name) for pattern in one.critical):
                    self._critical[number].append(who)
        self._edges.follow(workload_of)

    def read_s(self) -> tuple[float | None, ...]:
        """The blame of each workload's critical threads so far, in seconds; None where nothing counts."""
        if not self.works:
            return (None,) * len(self._critical)
        threads = self._edges.read().threads
        return tuple(
            sum(threads[who].blame_ns for who in critical if who in threads) / 1e9
            for critical in self._critical
        )

    def close(self) -> None:
        """Leave nothing in the kernel."""
        self._edges.close()
