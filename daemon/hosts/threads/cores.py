"""The cores that we may use, followed through hot-plug: one small read a period."""

from __future__ import annotations

import os

from ...linux import cpus
from ...model import Core, Topology


class CoreWatch:
    """The present topology; made anew only when the kernel's list of online CPUs changes."""

    def __init__(self, wanted: frozenset[Core] | None, sysfs: str) -> None:
        self._wanted = wanted
        self._sysfs = sysfs
        self._online = os.open(f"{sysfs}/devices/system/cpu/online", os.O_RDONLY | os.O_CLOEXEC)
        self._line = b""
        self._topology = Topology((), {})

    def topology(self) -> Topology:
        """The topology now. CPUs that the scheduler does not balance are no cores of ours:
        whatever is put there stays on the first one (seapath/ansible #908)."""
        line = os.pread(self._online, 4096, 0)
        if line != self._line:
            self._line = line
            usable = cpus.online(self._sysfs) - cpus.isolated(self._sysfs)
            if self._wanted is not None:
                usable &= self._wanted
            self._topology = self._found(tuple(map(Core, sorted(usable))))
        return self._topology

    def _found(self, cores: tuple[Core, ...]) -> Topology:
        nodes, capacities = cpus.node_of(self._sysfs), cpus.capacity_of(self._sysfs)
        places = cpus.cores_of(self._sysfs)
        first = {place: cpu for cpu, place in sorted(places.items(), reverse=True)}
        has_siblings = len(first) < len(places)
        return Topology(
            cores,
            {core: nodes.get(core, 0) for core in cores},
            {core: capacities[core] for core in cores if core in capacities},
            {core: first[places[core]] for core in cores if core in places} if has_siblings else {},
        )

    def close(self) -> None:
        """Let the descriptor go."""
        os.close(self._online)
