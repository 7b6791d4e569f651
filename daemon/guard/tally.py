"""What is measured in a window: how much longer than their computing the vCPUs took that siblings wait for.

    stretch = sum of services × (run + ready) / sum of services × run

**Services** of a vCPU are the wake-ups of siblings that it made: each is an end of somebody's waiting, so a
vCPU counts as often as it is waited for, and background that wakes nobody does not count at all. Where no
sibling is woken, those count whom somebody outside the workload wakes, by how often: so a server of one
thread does, and background that goes by its own timer does not. Where neither is seen (or nobody counts it),
all vCPUs count, by how often they were woken (dispatched, where that is not counted either): a worker that
answers requests has many short bursts, background few and long ones.

Services are counted in the windows without the policy, so a vCPU that the policy starves does not lose its
voice with its time. Both windows of a pair are weighed by those counted before it (in the first pair, by
those of its first window): in two periods alone chance says who counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from ..model import Period, VcpuId
from .judge import WHOLE

LEAST_BUSY_NS = 1_000_000
"""A window in which the counted vCPUs of a workload wanted to run for less says nothing about it: a single
wait of a tick would multiply its stretch."""

MOST_STRETCH = 1000
"""Who does not get to run at all is stretched by this much: a window of 160 ms has no more to tell."""

LEAST_WOKEN = 3
"""Wake-ups of siblings, or from outside, in a window, from which on they are what counts."""


class Tally(NamedTuple):
    """One workload in the present window, weighed by services: time running, and time running or ready; and
    the plain time running or ready."""

    workload: str
    run: int = 0
    busy: int = 0
    plain_ns: int = 0

    @property
    def stretch(self) -> int | None:
        """In thousandths; None if there was too little to see."""
        if self.plain_ns < LEAST_BUSY_NS:
            return None
        return self.busy * WHOLE // max(1, self.run, self.busy // MOST_STRETCH)


class Served(NamedTuple):
    """One vCPU without the policy: siblings that it woke; how often it was woken from outside, and
    at all; time running, and busy."""

    vcpu: VcpuId
    woke: int
    asked: int
    bursts: int
    run_ns: int
    busy_ns: int


class Services(NamedTuple):
    """How often each vCPU of a workload counts; who does not is left out."""

    workload: str
    counts: tuple[tuple[VcpuId, int], ...]


def counted(services: Iterable[Served], period: Period) -> tuple[Served, ...]:
    """The windows without the policy with one more period."""
    known = {each.vcpu: each for each in services}
    woke = {vcpu: each.woke for vcpu, each in known.items()}
    for used in period.usage.values():
        for waker, count in used.wakers:
            woke[waker] = woke.get(waker, 0) + count
    found = []
    for vcpu, used in period.usage.items():
        _, _, asked, bursts, run_ns, busy_ns = known.get(vcpu) or Served(vcpu, 0, 0, 0, 0, 0)
        asked += used.external_wakeups or 0
        bursts += used.dispatches if used.wakeups is None else used.wakeups
        run_ns += used.consumed_ns
        busy_ns += used.consumed_ns + used.ready_ns
        if bursts or busy_ns or vcpu in woke:
            found.append(Served(vcpu, woke.get(vcpu, 0), asked, bursts, run_ns, busy_ns))
    return tuple(found)


def weighed(services: Iterable[Served], period: Period) -> tuple[tuple[Services, ...], tuple[Tally, ...]]:
    """How often each vCPU counts from now on, and the tallies of the first window."""
    of = {each.vcpu: each for each in services}
    weights: list[Services] = []
    tallies: list[Tally] = []
    for workload in period.workloads:
        mine = [of[vcpu.id] for vcpu in workload.vcpus if vcpu.id in of]
        counts = [(each, count) for each, count in zip(mine, _voices(mine), strict=True) if count]
        if counts:
            weights.append(Services(workload.name, tuple([(each.vcpu, count) for each, count in counts])))
            run = sum([count * each.run_ns for each, count in counts])
            busy = sum([count * each.busy_ns for each, count in counts])
            tallies.append(Tally(workload.name, run, busy, sum([each.busy_ns for each, _ in counts])))
    return tuple(weights), tuple(tallies)


def _voices(mine: Sequence[Served]) -> list[int]:
    """How often each of a workload's vCPUs counts."""
    woke = [each.woke for each in mine]
    asked = [each.asked for each in mine]
    if sum(woke) >= LEAST_WOKEN:
        return woke
    return asked if sum(asked) >= LEAST_WOKEN else [each.bursts for each in mine]


def added(tallies: Iterable[Tally], services: Iterable[Services], period: Period) -> tuple[Tally, ...]:
    """The tallies with one more period."""
    of = {each.workload: each for each in tallies}
    usage_of = period.usage
    found = []
    for workload, counts in services:
        _, run, busy, plain_ns = of.get(workload) or Tally(workload)
        for vcpu, count in counts:
            used = usage_of.get(vcpu)
            if used:
                consumed_ns, ready_ns = used[:2]
                run += count * consumed_ns
                busy += count * (consumed_ns + ready_ns)
                plain_ns += consumed_ns + ready_ns
        found.append(Tally(workload, run, busy, plain_ns))
    return tuple(found)


def stretches(tallies: Iterable[Tally]) -> Mapping[str, int]:
    """The stretch of each workload that has one, in thousandths."""
    return {each.workload: stretch for each in tallies if (stretch := each.stretch) is not None}
