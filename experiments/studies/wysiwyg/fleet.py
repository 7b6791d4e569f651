"""A fleet under a stream of containers: which host each comes to, what it is given, and for how long.

Every container asks for an amount (log-normal, 1.8 CPUs on average) and lives for a while (exponential). A
part of them is exclusive (the paper's C1). The same seed gives the same containers to every placement and to
every part, and who is exclusive at 30 % is so at 40 %, too.
"""

from __future__ import annotations

import heapq
import random
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from dasec.reservations import Ask, CpuClass, Principle, Reservations, allocate, release
from dasec.reservations.grants import WHOLE
from dasec.reservations.take import CpuPlace

from .nodes import Nodes

SOCKETS, CORES = 2, 8
MEAN_MILLICORES, SIGMA, STEP_MILLICORES = 1800, 0.8, 50
"""Most of the trace's containers ask for one or two CPUs, a few for many; requests have two digits."""


class Placement(StrEnum):
    """How a host is chosen: as Kubernetes does, by simulating each host's allocation, and the same with an
    amount spread where no host can give what is seen (WYSIWYG, sections IV-D and IV-B3)."""

    DEFAULT = "default"
    OPTIMISED = "optimised"
    BEST_EFFORT = "optimised, best-effort"


class Container(NamedTuple):
    """Arrival, life and amount; exclusive if `drawn` is below the part that is."""

    name: str
    at: float
    life: float
    millicores: int
    drawn: float


class Outcome(NamedTuple):
    """Of exclusive containers: the share of their CPU time that lies on CPUs of several cpusets, how many
    were refused although there was room, how many there were; and the CPU time of a choice."""

    shared: float
    refused: int
    exclusive: int
    choice_us: float


def containers(seed: int, count: int, hosts: int, offered: float) -> Iterator[Container]:
    """So many, at a rate that asks for `offered` times what the hosts have; lives are 1 on average."""
    rng = random.Random(seed)
    largest = SOCKETS * CORES * WHOLE
    rate = offered * hosts * largest / MEAN_MILLICORES
    mu = -SIGMA * SIGMA / 2
    at = 0.0
    for number in range(count):
        at += rng.expovariate(rate)
        steps = MEAN_MILLICORES / STEP_MILLICORES * rng.lognormvariate(mu, SIGMA)
        amount = min(largest, max(1, round(steps)) * STEP_MILLICORES)
        yield Container(f"c{number}", at, rng.expovariate(1), amount, rng.random())


@dataclass
class Fleet:
    """Hosts, and the CPU time that exclusive containers have had since the beginning."""

    hosts: list[Reservations]
    placement: Placement
    apart_time: float = 0.0
    shared_time: float = 0.0
    refused: int = 0
    exclusive: int = 0
    choices_s: list[float] = field(default_factory=list)
    _now: float = 0.0
    _apart: list[int] = field(init=False)
    _shared: list[int] = field(init=False)
    _all_apart: int = 0
    _all_shared: int = 0
    _nodes: Nodes = field(init=False)

    def __post_init__(self) -> None:
        self._apart, self._shared = [0] * len(self.hosts), [0] * len(self.hosts)
        self._nodes = Nodes(self.hosts)

    def run(self, arrivals: Iterator[Container], part: float, settled: float) -> Outcome:
        """All arrivals; what happens before the time `settled` does not count."""
        leaving: list[tuple[float, str, int]] = []
        for container in arrivals:
            while leaving and leaving[0][0] <= container.at:
                at, name, host = heapq.heappop(leaving)
                self._pass(at, settled)
                self._become(host, release(self.hosts[host], name))
            self._pass(container.at, settled)
            found = self._place(container, part, counts=container.at >= settled)
            if found is not None:
                heapq.heappush(leaving, (container.at + container.life, container.name, found))
        spent_us = 1e6 * sum(self.choices_s) / max(1, len(self.choices_s))
        return Outcome(self.shared_time / (self.apart_time or 1), self.refused, self.exclusive, spent_us)

    def _place(self, container: Container, part: float, *, counts: bool) -> int | None:
        """Take it in; the number of its host."""
        cpu_class = CpuClass.EXCLUSIVE if container.drawn < part else CpuClass.SHARED
        ask = Ask(container.name, container.millicores, cpu_class)
        began = time.process_time()
        chosen = self._choose(ask)
        if counts:
            self.choices_s.append(time.process_time() - began)
            self.exclusive += ask.is_apart
            room = self._nodes.most_free_millicores >= ask.millicores
            self.refused += ask.is_apart and room and chosen is None
        if chosen is None:
            return None
        number, after = chosen
        self._become(number, after)
        return number

    def _choose(self, ask: Ask) -> tuple[int, Reservations] | None:
        """The host, and what it becomes."""
        for number, principle in self._tried(ask):
            after = allocate(self.hosts[number], ask, principle)
            if isinstance(after, Reservations):
                return number, after
        return None

    def _tried(self, ask: Ask) -> Iterator[tuple[int, Principle]]:
        """The host that is chosen, by principle: the best one grants it, the emptiest may refuse."""
        if self.placement is Placement.DEFAULT or not ask.is_apart:
            yield self._nodes.emptiest, Principle.HARD
            return
        spread = self.placement is Placement.BEST_EFFORT
        for principle in (Principle.HARD, *([Principle.BEST_EFFORT] if spread else [])):
            best = self._nodes.best(ask, principle)
            if best is not None:
                yield best, principle

    def _pass(self, now: float, settled: float) -> None:
        """Count the time until now."""
        length = max(0.0, now - max(self._now, settled))
        self.apart_time += length * self._all_apart
        self.shared_time += length * self._all_shared
        self._now = now

    def _become(self, number: int, after: Reservations) -> None:
        self.hosts[number] = after
        self._nodes.put(number, after)
        self._all_apart -= self._apart[number]
        self._all_shared -= self._shared[number]
        self._apart[number], self._shared[number] = _apart_and_shared(after)
        self._all_apart += self._apart[number]
        self._all_shared += self._shared[number]


def _apart_and_shared(host: Reservations) -> tuple[int, int]:
    """The millicores of exclusive containers, and those of them on CPUs where others may run, too."""
    apart = [grant for grant in host.grants.values() if grant.ask.is_apart]
    pooled = len(apart) < len(host.grants)
    users: dict[int, int] = {}
    for grant in apart:
        for cpu, _ in grant.parts:
            users[cpu] = users.get(cpu, 0) + 1
    return sum(grant.ask.millicores for grant in apart), sum(
        millicores
        for grant in apart
        for cpu, millicores in grant.parts
        if pooled or users[cpu] > 1  # who shares may run on every CPU that is given in parts
    )


def fleet(hosts: int, placement: Placement) -> Fleet:
    """Empty hosts; the rest of their systems is elsewhere, as in the paper's simulation."""
    places = {
        socket * CORES + core: CpuPlace(socket, core) for socket in range(SOCKETS) for core in range(CORES)
    }
    return Fleet([Reservations(places, apart=True) for _ in range(hosts)], placement)
