"""Two snapshots become a period: what each vCPU did between them (the paper's task monitor, §4.2, §5).

Running totals are turned into differences, with the accidents of a live host sorted out:

- A vCPU that is only in the later snapshot has just come: it has knobs and a core, but no usage.
- A vCPU that is only in the earlier one is gone and appears nowhere.
- A vCPU one of whose totals went backwards was replaced or reset; it counts as one that has just come. A
  waker that is no longer listed is no such case: its entry was dropped, or the waker is gone.

Conflicts (§4.2, RCR: "preempted" or "not scheduled after they become ready and have waited a long time
exceeding their rescheduling latencies") are the counted preemptions plus late wake-ups where the host
counts both. Elsewhere they are estimated as min(dispatches, ready time / rescheduling latency): the time
spent ready is worth at most that many waits of full length, and each wait ends in a dispatch. The latency
is the one that was set when the period began. Without it there is no measure, hence no conflict.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import TypeVar

from .model import (
    IDLE,
    Core,
    Counters,
    Knobs,
    Limits,
    Period,
    Snapshot,
    ThreadState,
    Usage,
    VcpuId,
)

T = TypeVar("T")
Wakers = tuple[tuple[VcpuId, int], ...]
Wakings = Callable[[VcpuId, Wakers, Wakers], Wakers]

_CORE = attrgetter("core")
_UNCOUNTED: tuple[int | None, ...] = (None, None, None, None)
_SLEPT = IDLE[:6]
_ASLEEP = ThreadState.IDLE  # looking a member up in its enum costs ten times as much as a global


def between(index: int, before: Snapshot, after: Snapshot) -> Period:
    """The period from `before` to `after`; a ValueError if the clock did not advance."""
    length_ns = after.clock_ns - before.clock_ns
    if length_ns <= 0:
        raise ValueError(
            f"period {index}: the clock went from {before.clock_ns} to {after.clock_ns} ns: "
            "give the earlier snapshot first, and two different ones"
        )
    limits = {name: _limits(before.limits.get(name), now) for name, now in after.limits.items()}
    return Period(
        index=index,
        length_ns=length_ns,
        topology=after.topology,
        workloads=after.workloads,
        usage=_without_caps(_usage(before, after), limits),
        knobs=after.knobs,
        core_of=dict(zip(after.counters, map(_CORE, after.counters.values()), strict=True)),
        limits=limits,
        unwatched=after.unwatched,
    )


def column(table: Mapping[VcpuId, T], vcpus: Sequence[VcpuId]) -> list[T | None]:
    """The entries of those vCPUs, None where there is none; a mere copy if the table is in that order."""
    if list(table) == vcpus:
        return list(table.values())
    return list(map(table.get, vcpus))


def _limits(before: Limits | None, now: Limits) -> Limits:
    """What was used and throttled between two looks; nothing where a total went back: a new group's does."""
    then = before or now
    return Limits(
        now.around_ppm,
        max(0, now.used_ns - then.used_ns),
        max(0, now.throttled_ns - then.throttled_ns),
        {
            vcpu: own._replace(throttled_ns=max(0, own.throttled_ns - then.own.get(vcpu, own).throttled_ns))
            for vcpu, own in now.own.items()
        },
    )


def _without_caps(usage: dict[VcpuId, Usage], limits: Mapping[str, Limits]) -> dict[VcpuId, Usage]:
    """The kernel counts as ready who is stopped by its own quota, ours or not. That is no wait for a core,
    nor a conflict."""
    for one in limits.values():
        for vcpu, own in one.own.items():
            used = usage.get(vcpu)
            if own.throttled_ns and used and used.ready_ns:
                ready_ns = max(0, used.ready_ns - own.throttled_ns)
                conflicts = used.conflicts * ready_ns // used.ready_ns
                usage[vcpu] = used._replace(ready_ns=ready_ns, conflicts=conflicts)
    return usage


def seat(period: Period, vcpu: VcpuId) -> Core | None:
    """The core that a vCPU belongs to: its pin if it is pinned, else where it was last.

    The two differ for a sleeper that was moved: it gets to its new core only when it wakes up.
    """
    affinity = period.knobs[vcpu].affinity
    if affinity is not None and len(affinity) == 1:
        return next(iter(affinity))
    return period.core_of.get(vcpu)


def _usage(before: Snapshot, after: Snapshot) -> dict[VcpuId, Usage]:
    # Everybody sleeps until shown otherwise: `fromkeys` reuses the keys' hashes, and most do sleep.
    usage = dict.fromkeys(after.counters, IDLE)
    latencies = before.knobs
    wakings = None if after.unwatched else _wakings(after)
    for (vcpu, now), then in zip(
        after.counters.items(), column(before.counters, list(after.counters)), strict=True
    ):
        if now is then and now.state is _ASLEEP:
            continue
        used = None if then is None else _used(vcpu, then, now, latencies, wakings)
        if used is None:
            del usage[vcpu]
        elif used[:6] != _SLEPT:
            usage[vcpu] = used
    return usage


def _used(
    vcpu: VcpuId, then: Counters, now: Counters, latencies: Mapping[VcpuId, Knobs], wakings: Wakings | None
) -> Usage | None:
    """What one vCPU did, or None if its totals went backwards. Without `wakings` nobody was watched."""
    # Every total by name, and no copy of a row: this runs once for each vCPU that was awake.
    (
        on_cpu_then,
        ready_then,
        dispatches_then,
        _,
        _,
        preemptions_then,
        late_then,
        wakers_then,
        wakeups_then,
        external_then,
        chain_then,
        outward_then,
    ) = then
    on_cpu, ready, dispatches, state, _, preemptions, late, wakers, wakeups, external, chain, outward = now
    consumed_ns = on_cpu - on_cpu_then
    ready_ns = ready - ready_then
    dispatched = dispatches - dispatches_then
    if consumed_ns < 0 or ready_ns < 0 or dispatched < 0:
        return None
    if preemptions is None or preemptions_then is None or late is None or late_then is None:
        conflicts = _estimate(dispatched, ready_ns, latencies.get(vcpu)) if ready_ns else 0
    elif preemptions < preemptions_then or late < late_then:
        return None
    else:
        conflicts = preemptions - preemptions_then + late - late_then
    woken_by: Wakers = ()
    if wakers and wakings and wakers != wakers_then:
        woken_by = wakings(vcpu, wakers_then or (), wakers)
        if any(count < 0 for _, count in woken_by):
            return None
    counted = _UNCOUNTED
    if wakeups is not None and wakings:
        counted = (
            _difference(wakeups_then, wakeups),
            _difference(external_then, external),
            _difference(chain_then, chain),
            _difference(outward_then, outward),
        )
        if min([count or 0 for count in counted]) < 0:
            return None
    # Like Usage(...), without the Python code of a named tuple's constructor (decision 0003).
    return tuple.__new__(Usage, (consumed_ns, ready_ns, dispatched, state, conflicts, woken_by, *counted))


def _difference(then: int | None, now: int | None) -> int | None:
    """By how much a total grew; None if the host cannot count it, or could not yet."""
    return None if then is None or now is None else now - then


def _estimate(dispatches: int, ready_ns: int, knobs: Knobs | None) -> int:
    latency_ns = knobs.rescheduling_latency_ns if knobs else None
    return min(dispatches, ready_ns // latency_ns) if latency_ns else 0


def _wakings(after: Snapshot) -> Wakings:
    """A function from (vCPU, waker totals before, after) to the siblings that woke it, and how often."""
    workload_of: dict[VcpuId, str] = {}

    def wakings(vcpu: VcpuId, before: Wakers, now: Wakers) -> Wakers:
        if not workload_of:
            workload_of.update((each.id, group.name) for group in after.workloads for each in group.vcpus)
        home = workload_of.get(vcpu)
        then = dict(before)
        return tuple(
            (waker, count - then.get(waker, 0))
            for waker, count in sorted(now)
            if count != then.get(waker, 0)
            and waker != vcpu
            and home is not None
            and workload_of.get(waker) == home
        )

    return wakings
