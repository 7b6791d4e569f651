"""Random entries of a record, for properties."""

from __future__ import annotations

import random

from hypothesis import strategies as st

from dasec.model import (
    IDLE,
    Change,
    Core,
    Decision,
    Knob,
    Knobs,
    Outcome,
    Period,
    PolicyState,
    Reason,
    Result,
    ThreadState,
    Topology,
    Usage,
    Vcpu,
    VcpuId,
    Workload,
)
from dasec.record.entries import Entry, Stages

STATE = PolicyState()
OUTSIDER = VcpuId(99, 99, 99)
CORES = st.integers(0, 130).map(Core)
TIMES_NS = st.integers(0, 2**63)
COUNTS = st.integers(0, 1000)
NAMES = st.text(max_size=12)

KNOBS = st.builds(
    Knobs,
    st.none() | st.integers(2, 262144),
    st.none() | st.integers(0, 10**8),
    st.none() | st.frozensets(CORES, max_size=6),
)
TOPOLOGIES = st.lists(CORES, min_size=1, max_size=6, unique=True).map(
    lambda cores: Topology(tuple(sorted(cores)), {core: core // 4 for core in sorted(cores)})
)


@st.composite
def workload_sets(draw: st.DrawFn) -> tuple[Workload, ...]:
    tids = draw(st.lists(st.integers(1, 40), max_size=6, unique=True))
    vcpus = tuple(
        Vcpu(VcpuId(tid // 8 + 1, tid, draw(TIMES_NS)), draw(NAMES), draw(st.frozensets(CORES, max_size=6)))
        for tid in tids
    )
    cut = draw(st.integers(0, len(vcpus)))
    left = Workload("left", draw(st.integers(2, 4096)), vcpus[:cut])
    quota_cores = draw(st.none() | st.floats(0.1, 64))
    return left, Workload(draw(NAMES), 1024, vcpus[cut:], quota_cores, draw(st.booleans()))


@st.composite
def usages(draw: st.DrawFn, ids: list[VcpuId]) -> Usage:
    if draw(st.booleans()):
        return IDLE
    wakers = draw(st.lists(st.tuples(st.sampled_from([*ids, OUTSIDER]), st.integers(1, 1000)), max_size=3))
    return Usage(
        draw(TIMES_NS),
        draw(TIMES_NS),
        draw(st.integers(0, 1000)),
        draw(st.sampled_from(ThreadState)),
        draw(st.integers(0, 9)),
        tuple(wakers),
        *draw(st.just(()) | st.tuples(COUNTS, COUNTS, st.none() | TIMES_NS, st.none() | COUNTS)),
    )


@st.composite
def periods(draw: st.DrawFn, index: int, topology: Topology, workloads: tuple[Workload, ...]) -> Period:
    ids = [vcpu.id for workload in workloads for vcpu in workload.vcpus]
    return Period(
        index=index,
        length_ns=draw(st.integers(1, 10**9)),
        topology=topology,
        workloads=workloads,
        usage={vcpu: draw(usages(ids)) for vcpu in ids if draw(st.integers(0, 3))},
        knobs={vcpu: draw(KNOBS) for vcpu in ids if draw(st.integers(0, 3))},
        core_of={vcpu: draw(CORES) for vcpu in ids if draw(st.integers(0, 3))},
        unwatched=draw(st.booleans()),
    )


@st.composite
def results(draw: st.DrawFn, ids: list[VcpuId]) -> Result:
    values = st.integers(0, 10**8) | st.frozensets(CORES, max_size=4)
    change = Change(
        draw(st.sampled_from(ids)), draw(st.sampled_from(Knob)), draw(values), draw(values), "tsa.raise"
    )
    return Result(change, draw(st.sampled_from(Outcome)), draw(NAMES))


@st.composite
def histories(draw: st.DrawFn) -> list[Entry]:
    """A run of entries in which workloads and topology change now and then."""
    entries: list[Entry] = []
    topology, workloads = draw(TOPOLOGIES), draw(workload_sets())
    for index in range(draw(st.integers(1, 3))):
        if not draw(st.integers(0, 3)):
            topology, workloads = draw(TOPOLOGIES), draw(workload_sets())
        ids = [vcpu.id for workload in workloads for vcpu in workload.vcpus]
        decision = Decision(
            {vcpu: draw(KNOBS) for vcpu in ids if draw(st.booleans())},
            tuple(
                Reason(vcpu, Knob.WEIGHT, draw(NAMES), (("consumed_ns", draw(TIMES_NS)),)) for vcpu in ids[:2]
            ),
            STATE,
        )
        entries.append(
            Entry(
                clock_ns=draw(TIMES_NS),
                late_periods=draw(st.integers(0, 3)),
                period=draw(periods(index, topology, workloads)),
                decision=decision,
                results=tuple(draw(st.lists(results(ids), max_size=3))) if ids else (),
                violations=tuple(draw(st.lists(NAMES, max_size=2))),
                stages=Stages(1, 2, 3),
            )
        )
    return entries


def busy_history(count: int) -> list[Entry]:
    """Periods of two workloads that share two cores, one of them hungry, some of its vCPUs waiting."""
    chance = random.Random(4)
    topology = Topology((Core(0), Core(1)), {Core(0): 0, Core(1): 0})
    everywhere = frozenset(topology.cores)
    workloads = tuple(
        Workload(
            name, 1024, tuple(Vcpu(VcpuId(pid, tid, 5), f"v{tid}", everywhere) for tid in range(pid, pid + 4))
        )
        for name, pid in (("hungry", 100), ("calm", 200))
    )
    entries = []
    for index in range(count):
        period = Period(
            index=index,
            length_ns=80_000_000,
            topology=topology,
            workloads=workloads,
            usage={
                vcpu.id: _busy_usage(vcpu.id, chance) for workload in workloads for vcpu in workload.vcpus
            },
            knobs={
                vcpu.id: Knobs(1024, 4_000_000, everywhere)
                for workload in workloads
                for vcpu in workload.vcpus
            },
            core_of={vcpu.id: Core(vcpu.id.tid % 2) for workload in workloads for vcpu in workload.vcpus},
        )
        entries.append(
            Entry(index * 80_000_000, 0, period, Decision({}, (), STATE), (), (), Stages(4, 3, 2, 1))
        )
    return entries


def _busy_usage(vcpu: VcpuId, chance: random.Random) -> Usage:
    if vcpu.pid == 200 and vcpu.tid % 2:
        return IDLE
    state = chance.choice([ThreadState.READY, ThreadState.RUNNING, ThreadState.IDLE])
    return Usage(
        chance.randrange(1_000_000, 40_000_000), chance.randrange(30_000_000), 9, state, chance.randrange(9)
    )
