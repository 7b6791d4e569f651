"""Which host of a fleet would give most to an exclusive amount: the node's allocation, for all hosts at once.

12 500 hosts are too many to simulate one after the other for each of half a million containers. What the
allocation (`dasec.reservations.allocate`) depends on is few numbers of a host; here they are columns.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from dasec.reservations import Ask, Principle, Reservations
from dasec.reservations.grants import WHOLE

Hosts = npt.NDArray[np.intp]
"""Numbers of hosts, ascending."""


class Nodes:
    """The hosts as columns, shape (hosts,) or (CPUs, hosts); `put` what becomes of a host."""

    def __init__(self, hosts: Sequence[Reservations]) -> None:
        self._cpus = max(len(host.places) for host in hosts)
        self._free = np.zeros(len(hosts), np.int32)
        self._spare = np.zeros(len(hosts), np.int32)
        self._left_until = np.zeros((self._cpus, len(hosts)), np.int32)
        self._used_until = np.zeros((self._cpus, len(hosts)), np.int32)
        for number, host in enumerate(hosts):
            self.put(number, host)

    def put(self, number: int, host: Reservations) -> None:
        """That host is in this state now."""
        self._free[number] = host.free_millicores
        self._spare[number] = max(0, len(host.pool) - host.needs_pool)
        used = sorted(host.used_parts.values())
        used += [WHOLE] * (self._cpus - len(used))  # a CPU of which no parts are given has none left either
        self._used_until[:, number] = np.cumsum(used)
        self._left_until[:, number] = WHOLE * np.arange(1, self._cpus + 1) - self._used_until[:, number]

    @property
    def most_free_millicores(self) -> int:
        """Of the emptiest host."""
        return int(self._free.max())

    @property
    def emptiest(self) -> int:
        """The host; of several the one with the lowest number."""
        return int(self._free.argmax())

    def best(self, ask: Ask, principle: Principle) -> int | None:
        """The host that would grant it with most whole CPUs; of those, with parts on CPUs that others use
        least; of those, the emptiest. None if all refuse. `ask` is exclusive."""
        whole, fraction = divmod(ask.millicores, WHOLE)
        roomy = np.flatnonzero(self._free >= ask.millicores)
        own = np.minimum(self._spare[roomy], whole)
        for level in range(whole, -1, -1):
            short = whole - level
            if short and not fraction and principle is Principle.HARD:
                return None  # so many CPUs of its own, or nothing
            most = self._cpus if principle is Principle.BEST_EFFORT else short + bool(fraction)
            hosts = roomy[own == level]
            hosts, beside = self._granted(hosts, level, short * WHOLE + fraction, min(most, self._cpus))
            if len(hosts):
                least = hosts[beside == beside.min()]
                return int(least[self._free[least].argmax()])
        return None

    def _granted(self, hosts: Hosts, own: int, left: int, most: int) -> tuple[Hosts, npt.NDArray[np.int32]]:
        """Of hosts that give so many whole CPUs, those that have the millicores left on at most so many CPUs
        given in parts, and what others use of these."""
        if not left:
            return hosts, np.zeros(len(hosts), np.int32)
        enough = self._left_until[:most, hosts] >= left
        found = enough[-1]
        used = self._used_until[enough.argmax(axis=0), hosts]
        if left >= WHOLE:
            return hosts[found], used[found]
        # Less than a CPU is left, so one more CPU of the pool would do, where there is one.
        fresh = ~found & (self._spare[hosts] > own)
        granted = found | fresh
        return hosts[granted], np.where(found, used, 0)[granted]
