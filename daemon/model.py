"""The frozen values that every stage hands to the next; nothing here does anything.

Times are integers in nanoseconds and end in `_ns`; weights are integers with 1024 for
"like everybody else" (the kernel's nice-0 weight), whatever the host's own unit is.
The values made once a vCPU a period are named tuples: a frozen dataclass, as everything else is, costs three
times as much to make and hashes in Python (docs/decisions/0003-hot-values.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple, NewType

Core = NewType("Core", int)
"""A host logical CPU that we may use."""

CORE_PPM = 1_000_000
"""One core, all the time: rates of CPU time are in millionths of it."""

NEUTRAL_WEIGHT = 1024
"""The weight of a vCPU that nobody prefers: NICE_0_LOAD, and cgroup v1's default cpu.shares."""


class ThreadState(StrEnum):
    """What a vCPU was doing when the snapshot was taken (design: ready / running / idle)."""

    RUNNING = "running"
    READY = "ready"
    IDLE = "idle"
    UNKNOWN = "unknown"


class Knob(StrEnum):
    """Anything that we write."""

    __hash__ = str.__hash__  # an enum's own is Python code, and a write looks up a few of these

    WEIGHT = "weight"
    RESCHEDULING_LATENCY = "rescheduling_latency"
    AFFINITY = "affinity"
    CAP = "cap"
    """Of the CPU time of a vCPU's group, in millionths of a core; 0 is none."""


THREAD_KNOBS = (Knob.WEIGHT, Knob.RESCHEDULING_LATENCY, Knob.AFFINITY)
"""The fields of a Knobs, in order."""


class Level(StrEnum):
    """How much is counted of who wakes whom (bpf/edges.py)."""

    NONE = "none"
    EDGES = "edges"
    """Wake-ups by class, and edges; no times."""
    FULL = "full"


class VcpuId(NamedTuple):
    """Who a vCPU is. The start time (clock ticks since boot, proc(5) stat field 22)
    keeps a recycled thread id from being taken for the thread that had it before."""

    pid: int
    tid: int
    start_ticks: int


class Vcpu(NamedTuple):
    """One schedulable thread of a workload, and the cores it may use (its mask as we found it). `emulator`:
    it is QEMU's own, beside the guest's; it is judged like them, and its workload is due nothing for it."""

    id: VcpuId
    name: str
    allowed: frozenset[Core]
    emulator: bool = False


class Counters(NamedTuple):
    """One vCPU's running totals since it started. `None`: this host cannot count it.

    `wakeups` counts all wake-ups; those by siblings are in `wakers`, too, those from outside the workload in
    `external_wakeups`; the rest are timers. `chain_ns` is the time, on a core or ready for one, that
    continued what another thread began, or that another one waited for (docs/critical.md, "What is counted").
    `outward` counts the wake-ups that it made itself of threads outside its workload.
    """

    on_cpu_ns: int
    ready_ns: int
    dispatches: int
    state: ThreadState
    core: Core
    preemptions: int | None = None
    late_wakeups: int | None = None
    wakers: tuple[tuple[VcpuId, int], ...] | None = None
    wakeups: int | None = None
    external_wakeups: int | None = None
    chain_ns: int | None = None
    outward: int | None = None


class Knobs(NamedTuple):
    """One vCPU's knobs as the kernel has them. `None`: not ours to write, on this host or any more."""

    weight: int | None
    rescheduling_latency_ns: int | None
    affinity: frozenset[Core] | None


NO_KNOBS = Knobs(None, None, None)
"""Of a vCPU that is not there: nothing is ours to write."""


class Usage(NamedTuple):
    """What one vCPU did in one period. `None`: this host cannot count it."""

    consumed_ns: int
    ready_ns: int
    dispatches: int
    state: ThreadState
    conflicts: int
    wakers: tuple[tuple[VcpuId, int], ...] = ()
    wakeups: int | None = None
    external_wakeups: int | None = None
    chain_ns: int | None = None
    outward: int | None = None


IDLE = Usage(0, 0, 0, ThreadState.IDLE, 0)
"""A vCPU that slept through the whole period. Shared, so that sleepers cost nothing."""


class CpuWish(NamedTuple):
    """CPUs that a workload asks for itself: their class as the configuration has it, and how much of them."""

    cpu_class: str
    millicores: int


@dataclass(frozen=True, slots=True)
class Workload:
    """One VM, container or named set of processes that opted in. `nested`: a group around all its vCPUs
    competes for them with other workloads, so that their own weights only say how its share falls on its
    vCPUs and their cores (docs/measurements.md, "Group scheduling")."""

    name: str
    share: int
    vcpus: tuple[Vcpu, ...]
    quota_cores: float | None = None
    nested: bool = False
    wish: CpuWish | None = None

    @property
    def guests_own(self) -> tuple[Vcpu, ...]:
        """All but QEMU's own threads: those that say what it can use, and what it is due."""
        return tuple([vcpu for vcpu in self.vcpus if not vcpu.emulator])


class OwnLimit(NamedTuple):
    """The cap that we have on one vCPU's own group, in millionths of a core (0: none), and for how long its
    threads were throttled: a running total in a Snapshot, since the look before in a Period. `given_ppm`: the
    quota that the group has without us (0: none)."""

    present_ppm: int
    throttled_ns: int
    given_ppm: int = 0

    @property
    def quota_ppm(self) -> int:
        """What it can use of the quota that it was given: a vCPU never uses more than a core."""
        return min(self.given_ppm, CORE_PPM)


class Limits(NamedTuple):
    """What limits one workload. `around_ppm`: the tightest limit of the groups around all its vCPUs, in
    millionths of a core, 0 where there is none. `used_ns` and `throttled_ns` are that group's, totals in a
    Snapshot, since the look before in a Period; a host that cannot count the use says 0. `own` has those that
    can be capped; what their own quotas throttled is in `throttled_ns`, too."""

    around_ppm: int
    used_ns: int
    throttled_ns: int
    own: Mapping[VcpuId, OwnLimit]

    @property
    def is_divided(self) -> bool:
        """Has each of them a quota of its own, without us?"""
        return bool(self.own) and all(own.given_ppm for own in self.own.values())

    @property
    def given_ppm(self) -> int:
        """What these quotas come to."""
        return sum(own.quota_ppm for own in self.own.values())

    @property
    def tightest_ppm(self) -> int:
        """What all of them may use together; 0: there is no limit."""
        given_ppm = self.given_ppm if self.is_divided else 0
        return min(self.around_ppm or given_ppm, given_ppm or self.around_ppm)


NO_LIMITS = Limits(0, 0, 0, {})
"""Of a workload without a limit."""


@dataclass(frozen=True, slots=True)
class Topology:
    """The cores that we may use, and each one's NUMA node. `capacity_of`: if they differ, what each does in
    a time, the largest 1024. `whole_of`: a number that SMT siblings of one physical core have in common."""

    cores: tuple[Core, ...]
    node_of: Mapping[Core, int]
    capacity_of: Mapping[Core, int] = field(default_factory=dict)
    whole_of: Mapping[Core, int] = field(default_factory=dict)

    def without(self, core: Core) -> Topology:
        """When that core has gone."""
        tables = (self.node_of, self.capacity_of, self.whole_of)
        left = [{each: value for each, value in table.items() if each != core} for table in tables]
        return Topology(tuple(each for each in self.cores if each != core), *left)

    def are_siblings(self, one: Core, other: Core) -> bool:
        """Are they threads of one physical core?"""
        return bool(self.whole_of) and self.whole_of.get(one, one) == self.whole_of.get(other, other)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Everything `observe` saw at one instant: totals, knobs, and whether wake-ups are `unwatched`."""

    clock_ns: int
    topology: Topology
    workloads: tuple[Workload, ...]
    counters: Mapping[VcpuId, Counters]
    knobs: Mapping[VcpuId, Knobs]
    limits: Mapping[str, Limits] = field(default_factory=dict)
    unwatched: bool = False


@dataclass(frozen=True, slots=True)
class Period:
    """What happened between two snapshots.

    `usage` holds only vCPUs that were there at both ends; one that has just come has knobs and a core but no
    usage, and no rule may judge it yet. `unwatched`: who woke whom was not counted.
    """

    index: int
    length_ns: int
    topology: Topology
    workloads: tuple[Workload, ...]
    usage: Mapping[VcpuId, Usage]
    knobs: Mapping[VcpuId, Knobs]
    core_of: Mapping[VcpuId, Core]
    limits: Mapping[str, Limits] = field(default_factory=dict)
    unwatched: bool = False


class Reason(NamedTuple):
    """Why one knob of one vCPU should change: the rule that fired and the numbers it saw."""

    vcpu: VcpuId
    knob: Knob
    rule: str
    inputs: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class PolicyState:
    """What a policy remembers. Policies extend it with plain numbers, strings, VcpuIds and tuples of them, so
    that a record can hold it."""


class Stake(NamedTuple):
    """What a vCPU counts for in its workload's sum of weights: the weight that it has when nobody
    is preferred, and how much it wants to run (in any unit, the same for all)."""

    neutral: int
    demand: int


class WorkloadKnobs(NamedTuple):
    """What a policy wants of a workload as a whole. `caps`: how its limit, or the quotas that it was given,
    fall on the groups of its vCPUs: those that should change, in millionths of a core; 0: as without us."""

    caps: Mapping[VcpuId, int]


@dataclass(frozen=True, slots=True)
class Decision:
    """What a policy wants: knobs of vCPUs and of workloads that should change, why, and its next state.

    A workload's plain sum of weights must stay as it was, or become what `sums` says. A policy that keeps
    another one gives the `stakes` of all its vCPUs whose weight is ours (docs/decisions/0015-critical.md).
    `rest`: after how many periods the next one is needed; `unwatched`: until then nobody need be watched.
    `can_wait`: it may come later, since it goes by the length of the period. `workloads`, `sums`: by name.
    """

    knobs: Mapping[VcpuId, Knobs] = field(default_factory=dict)
    reasons: tuple[Reason, ...] = ()
    state: PolicyState = PolicyState()
    stakes: Mapping[VcpuId, Stake] = field(default_factory=dict)
    rest: int = 1
    can_wait: bool = False
    unwatched: bool = False
    workloads: Mapping[str, WorkloadKnobs] = field(default_factory=dict)
    sums: Mapping[str, int] = field(default_factory=dict)


KnobValue = int | frozenset[Core]


class Change(NamedTuple):
    """One write: this knob of this vCPU, from the prior value to the new one, for that rule."""

    vcpu: VcpuId
    knob: Knob
    prior: KnobValue
    new: KnobValue
    rule: str


class Outcome(StrEnum):
    """What became of a Change."""

    APPLIED = "applied"
    VANISHED = "vanished"
    REJECTED = "rejected"
    YIELDED = "yielded"
    DRY_RUN = "dry_run"


class Result(NamedTuple):
    """A Change and what became of it; `detail` says why where it was not applied."""

    change: Change
    outcome: Outcome
    detail: str = ""


class Finding(NamedTuple):
    """Does it work, and how or why not."""

    works: bool
    note: str


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What this host can do, found by trying. Each `*_note` says how, or why not."""

    backend: str
    weight: bool
    weight_note: str
    rescheduling_latency: bool
    rescheduling_latency_note: str
    affinity: bool
    affinity_note: str
    wake_edges: bool
    wake_edges_note: str
    warnings: tuple[str, ...] = ()
    cap: bool = False
    cap_note: str = "no group of this host takes one"
    nested_weight: bool = True
    """May one be written below a workload's own group? Not where that starves others (probe/reweight.py)."""
    nice: bool = False
    """Can a thread be niced, and back? Then that is its weight among those that share its group."""


@dataclass(frozen=True, slots=True)
class Restored:
    """What `restore` did: knobs put back; left alone, since somebody else changed them; of threads that are
    gone; not put back, with why; and slices of threads that left the fair class, held till it is."""

    put_back: int
    left_alone: tuple[str, ...]
    vanished: int
    failed: tuple[str, ...]
    waiting: tuple[str, ...] = ()

    def with_more(self, other: Restored) -> Restored:
        """Both together."""
        return Restored(
            self.put_back + other.put_back,
            self.left_alone + other.left_alone,
            self.vanished + other.vanished,
            self.failed + other.failed,
            self.waiting + other.waiting,
        )


@dataclass(frozen=True, slots=True)
class Shortfall:
    """What a host leaves out for want of room. By workload, now: threads beyond the bound, left alone, and
    managed ones whose wake-ups nobody counts. Since it was made: wake-ups lost and missed (bpf/edges.py)."""

    left_out: Mapping[str, int] = field(default_factory=dict)
    unheard: Mapping[str, int] = field(default_factory=dict)
    lost: int = 0
    missed: int = 0
