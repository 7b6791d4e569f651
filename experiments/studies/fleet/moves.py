"""Days of a fleet under three placements, with and without following `dasec fleet hint`.

Every half hour the product's own rule (daemon/placement) is asked until it names no move more, which is as
often as its own rest lets a host take part in one. What it is told of a host: how many vCPUs run, by their
demand, and how many wait, as was measured of hosts that busy. p99 is the measured curve's, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

import numpy as np

from dasec.placement import AdvisedMove, FleetHost, Lately, Resident, hint
from dasec.placement.waits import queued_part

from .capacity import balanced
from .curves import CPUS, Floats, Waits
from .demand import STEPS, Vms, VmSource

VCPUS = 16
"""Of each VM, as in the measured runs."""

REST_STEPS = 6
"""Half an hour, in which a host that took part in a move takes part in no other."""

HALVINGS = 40


class Start(StrEnum):
    """Who is where at first."""

    RANDOM = "random"
    EVEN_NUMBERS = "least loaded by number"
    EVEN_MEANS = "least loaded by mean"


class Made(NamedTuple):
    """One move that was followed."""

    step: int
    vm: int
    source: int
    target: int


@dataclass(frozen=True, slots=True)
class Lived:
    """What a fleet went through: how busy each host was at each step after the first day, sorted, and all
    moves in their order."""

    busy: Floats
    moves: tuple[Made, ...]


@dataclass
class LivingFleet:
    """VMs on hosts. `where`: the host of each VM. `been`: (VM, host) with the last step that it was there;
    `moved`: of each host, the step of the last move that it took part in."""

    where: np.ndarray[tuple[int], np.dtype[np.intp]]
    hosts: int
    been: dict[tuple[int, int], int]
    moved: dict[int, int]

    def shown(self, asked: Floats, busy: Floats, known: Waits) -> list[FleetHost]:
        """As the recorded numbers have it, of hosts that wait like that."""
        found = []
        for host in range(self.hosts):
            wait = waiting_part(float(busy[host]), known)
            there = np.flatnonzero(self.where == host)
            running = asked[there] * min(1.0, 1 / max(busy[host], 1e-9))
            waits = running * wait / (1 - wait) if wait < 1 else running
            total = float(waits.sum())
            residents = tuple(
                Resident(f"vm-{vm}", VCPUS, float(runs), float(waited), float(total * part))
                for vm, runs, waited, part in zip(
                    there, running, waits, running / max(running.sum(), 1e-9), strict=True
                )
            )
            found.append(FleetHost(f"host-{host}", CPUS, wait, residents))
        return found

    def lately(self, step: int) -> Lately:
        """What the rule must not undo, and whom it must let rest."""
        day = frozenset(
            (f"vm-{vm}", f"host-{host}") for (vm, host), last in self.been.items() if step - last < STEPS
        )
        return Lately(
            day, frozenset(f"host-{host}" for host, at in self.moved.items() if step - at < REST_STEPS)
        )

    def follow(self, move: AdvisedMove, step: int) -> Made:
        """The VM is there at once."""
        vm, source, target = (int(name.split("-")[1]) for name in (move.workload, move.source, move.target))
        self.been[vm, source] = step
        self.where[vm] = target
        self.moved |= {source: step, target: step}
        return Made(step, vm, source, target)


def waiting_part(busy: float, waits: Waits) -> float:
    """Of those who want a core, how many wait, if that part of the cores would be used without waiting. Who
    is busier than any measured host waits at least as the queue has it with which the rule simulates."""
    measured = waits.part(busy)
    return measured if busy <= waits.busiest else max(measured, queued(busy))


def queued(busy: float) -> float:
    """The same, by that queue."""
    low, high = min(busy, 1.0) * CPUS, 4.0 * CPUS
    for _ in range(HALVINGS):
        runnable = (low + high) / 2
        runs = runnable * (1 - queued_part(CPUS, 64 * CPUS, runnable))
        low, high = (runnable, high) if runs < min(busy, 0.999) * CPUS else (low, runnable)
    return queued_part(CPUS, 64 * CPUS, low)


def placed(
    start: Start, means: Floats, hosts: int, random: np.random.Generator
) -> np.ndarray[tuple[int], np.dtype[np.intp]]:
    """The host of each VM."""
    if start is Start.EVEN_MEANS:
        return balanced(means, hosts)
    if start is Start.EVEN_NUMBERS:
        return random.permutation(np.arange(len(means)) % hosts)
    return random.integers(0, hosts, len(means))


def live(
    source: VmSource, hosts: int, vms_each: int, start: Start, days: int, seed: int, told: Waits | None
) -> Lived:
    """The same demand for all starts. `told`: hints are followed, of hosts that wait like that; None: no
    hints."""
    random = np.random.default_rng(seed)
    vms = source.vms(hosts * vms_each, random)
    fleet = LivingFleet(placed(start, vms.means, hosts, np.random.default_rng(seed + 1)), hosts, {}, {})
    moves: list[Made] = []
    seen = []
    for step, asked in enumerate(_days(vms, random, days)):
        busy = np.bincount(fleet.where, asked, hosts) / CPUS
        if step >= STEPS:
            seen.append(busy)
        if told and step % REST_STEPS == 0:
            moves += _follow_all(fleet, asked, busy, step, told)
    return Lived(np.sort(np.concatenate(seen)), tuple(moves))


def _days(vms: Vms, random: np.random.Generator, days: int) -> Iterator[Floats]:
    for _ in range(days):
        yield from vms.day(random)


def _follow_all(fleet: LivingFleet, asked: Floats, busy: Floats, step: int, told: Waits) -> Iterator[Made]:
    while (move := hint(fleet.shown(asked, busy, told), fleet.lately(step))) is not None:
        yield fleet.follow(move, step)
        busy = np.bincount(fleet.where, asked, fleet.hosts) / CPUS
