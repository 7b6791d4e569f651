"""Periods and snapshots from tables: one row a vCPU, in the units that people think in (ms, µs)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from dasec.model import (
    IDLE,
    Core,
    Counters,
    CpuWish,
    Knobs,
    Period,
    Snapshot,
    ThreadState,
    Topology,
    Usage,
    Vcpu,
    VcpuId,
    Workload,
)

MS = 1_000_000
PERIOD_MS = 80

READY, RUNNING, ASLEEP = ThreadState.READY, ThreadState.RUNNING, ThreadState.IDLE


@dataclass(frozen=True)
class Row:
    """One vCPU at the end of a period; `woken_by` holds (row of the same workload, times).

    `pin` is the core that it is pinned to; without, its affinity is all that it is allowed (all cores).
    `movable=False` takes its affinity knob away. `new=True`: it has just come, and has no usage.
    `emulator`: QEMU's main thread. `wakeups` and what follows are None where the host does not count them.
    """

    consumed_ms: float = 0
    state: ThreadState = ASLEEP
    weight: int | None = 1024
    latency_us: float | None = 4000
    core: int = 0
    ready_ms: float = 0
    dispatches: int = 10
    conflicts: int = 0
    woken_by: Sequence[tuple[int, int]] = ()
    allowed: Sequence[int] | None = None
    pin: int | None = None
    movable: bool = True
    new: bool = False
    emulator: bool = False
    wakeups: int | None = None
    external: int | None = None
    chain_ms: float | None = None
    outward: int | None = None


@dataclass(frozen=True)
class Group:
    """One workload: its name and its rows."""

    name: str
    rows: Sequence[Row]
    share: int = 1024
    quota_cores: float | None = None
    nested: bool = False
    wish: CpuWish | None = None


def topology(cores: int = 2, nodes: Sequence[int] = ()) -> Topology:
    """Cores 0, 1, …; `nodes` names the NUMA node of each (default: all on node 0)."""
    numbers = tuple(map(Core, range(cores)))
    return Topology(numbers, dict(zip(numbers, nodes or [0] * cores, strict=True)))


def vcpu_id(group: int, row: int) -> VcpuId:
    """The id of row `row` of the workload number `group` of a table."""
    pid = 1000 * (group + 1)
    return VcpuId(pid, pid + row + 1, 7)


def core_set(*numbers: int) -> frozenset[Core]:
    return frozenset(map(Core, numbers))


def period(
    *groups: Group,
    cores: int = 2,
    length_ms: float = PERIOD_MS,
    nodes: Sequence[int] = (),
    index: int = 100,
) -> Period:
    """The period that a table of workloads describes."""
    rows = {vcpu_id(g, r): (g, row) for g, group in enumerate(groups) for r, row in enumerate(group.rows)}
    return Period(
        index=index,
        length_ns=round(length_ms * MS),
        topology=topology(cores, nodes),
        workloads=tuple(_workload(g, group, cores) for g, group in enumerate(groups)),
        usage={vcpu: _usage(g, row) for vcpu, (g, row) in rows.items() if not row.new},
        knobs={vcpu: _knobs(row, cores) for vcpu, (_, row) in rows.items()},
        core_of={vcpu: Core(row.core) for vcpu, (_, row) in rows.items()},
    )


def unwatched(made: Period) -> Period:
    """As it is seen where wake-ups are not followed."""
    return replace(made, unwatched=True, usage={who: _uncounted(used) for who, used in made.usage.items()})


def _uncounted(used: Usage) -> Usage:
    if used is IDLE:
        return used
    return used._replace(wakers=(), wakeups=None, external_wakeups=None, chain_ns=None, outward=None)


def snapshot(
    clock_ms: float,
    counters: Mapping[VcpuId, Counters],
    *,
    latency_us: float | None = 4000,
    workloads: Sequence[Sequence[VcpuId]] = (),
) -> Snapshot:
    """What was seen at an instant: running totals, the same knobs for all, two cores.

    Without `workloads`, all vCPUs belong to one.
    """
    members = workloads or [list(counters)]
    allowed = core_set(0, 1)
    return Snapshot(
        clock_ns=round(clock_ms * MS),
        topology=topology(2),
        workloads=tuple(
            Workload(f"w{number}", 1024, tuple(Vcpu(vcpu, f"t{vcpu.tid}", allowed) for vcpu in ids))
            for number, ids in enumerate(members)
        ),
        counters=counters,
        knobs={vcpu: Knobs(1024, _ns(latency_us), allowed) for vcpu in counters},
    )


def _workload(number: int, group: Group, cores: int) -> Workload:
    vcpus = tuple(
        Vcpu(vcpu_id(number, r), f"{group.name}/{r}", _allowed(row, cores), row.emulator)
        for r, row in enumerate(group.rows)
    )
    return Workload(group.name, group.share, vcpus, group.quota_cores, group.nested, group.wish)


def _allowed(row: Row, cores: int) -> frozenset[Core]:
    return core_set(*(range(cores) if row.allowed is None else row.allowed))


def _usage(group: int, row: Row) -> Usage:
    if row.state is ASLEEP and not row.consumed_ms and row.wakeups is None:
        return IDLE
    return Usage(
        consumed_ns=round(row.consumed_ms * MS),
        ready_ns=round(row.ready_ms * MS),
        dispatches=row.dispatches,
        state=row.state,
        conflicts=row.conflicts,
        wakers=tuple((vcpu_id(group, waker), count) for waker, count in row.woken_by),
        wakeups=row.wakeups,
        external_wakeups=row.external,
        chain_ns=None if row.chain_ms is None else round(row.chain_ms * MS),
        outward=row.outward,
    )


def _knobs(row: Row, cores: int) -> Knobs:
    if not row.movable:
        affinity = None
    elif row.pin is None:
        affinity = _allowed(row, cores)
    else:
        affinity = core_set(row.pin)
    return Knobs(row.weight, _ns(row.latency_us), affinity)


def _ns(us: float | None) -> int | None:
    return None if us is None else round(us * 1000)
