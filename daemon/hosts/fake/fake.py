"""A host without a kernel: an exact state machine, for tests and for trying policies.

Threads do what plain data says: run, wait for a core, sleep. Knobs hold exactly what is
written. Time passes only in `advance`. Threads can end, ids be given out again, and others
can write knobs.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from ...model import (
    NEUTRAL_WEIGHT,
    Capabilities,
    Change,
    Core,
    Counters,
    Knob,
    Knobs,
    KnobValue,
    Limits,
    Outcome,
    OwnLimit,
    Restored,
    Result,
    Shortfall,
    Snapshot,
    ThreadState,
    Topology,
    Vcpu,
    VcpuId,
    Workload,
)
from ...roster import RosterEntry, Terms

DEFAULT_SLICE_NS = 1_400_000
"""The mainline default on small machines (docs/measurements.md)."""

Numbers = tuple[int, int]


class Stretch(NamedTuple):
    """What a thread does for a while: `on_cpu_ns` of running, `ready_ns` of waiting, in which it is
    dispatched so many times; and the state in which the while ends."""

    on_cpu_ns: int = 0
    ready_ns: int = 0
    dispatches: int = 0
    state: ThreadState = ThreadState.IDLE


@dataclass(frozen=True, slots=True)
class FakeThread:
    """One thread of the fake kernel."""

    pid: int
    tid: int
    name: str = "vcpu"
    core: Core = Core(0)
    policy: str = "fair"
    counters: Stretch = Stretch()
    knobs: Knobs = field(default_factory=lambda: Knobs(NEUTRAL_WEIGHT, DEFAULT_SLICE_NS, frozenset()))
    start_ticks: int = 1
    quota_ppm: int = 0

    @property
    def id(self) -> VcpuId:
        """Who it is."""
        return VcpuId(self.pid, self.tid, self.start_ticks)


class _Held(NamedTuple):
    prior: KnobValue
    ours: KnobValue


EXACT = Capabilities(
    backend="fake",
    weight=True,
    weight_note="exact",
    rescheduling_latency=True,
    rescheduling_latency_note="exact",
    affinity=True,
    affinity_note="exact",
    wake_edges=False,
    wake_edges_note="none",
)


class FakeHost:
    """See Host. On top of it, what a test does to the fake kernel: spawn, end, advance, meddle, turn."""

    def __init__(
        self,
        cores: int = 2,
        *,
        capabilities: Capabilities = EXACT,
        dry_run: bool = False,
        nodes: Sequence[int] = (),
    ) -> None:
        numbered = tuple(Core(number) for number in range(cores))
        node_of = dict(zip(numbered, nodes or (0,) * cores, strict=True))
        self._topology = Topology(numbered, node_of)
        self._capabilities = capabilities
        self._dry_run = dry_run
        self._clock_ns = 0
        self._starts = 0
        self._threads: dict[Numbers, FakeThread] = {}
        self._held: dict[tuple[VcpuId, Knob], _Held] = {}
        self._yielded: set[tuple[VcpuId, Knob]] = set()
        self._anew: set[tuple[VcpuId, Knob]] = set()
        self._managed: set[VcpuId] = set()
        self._terms: dict[VcpuId, Terms | None] = {}
        self._watching = True
        self.writes: list[Change] = []
        """Every write that reached the fake kernel."""

    @property
    def capabilities(self) -> Capabilities:
        """What this host can do."""
        return self._capabilities

    # What a test does to the kernel.

    def spawn(self, pid: int, tid: int, *, name: str = "vcpu", core: int = 0, policy: str = "fair") -> VcpuId:
        """A new thread; its id may be one that an ended thread had."""
        if (pid, tid) in self._threads:
            raise ValueError(f"thread {tid} of process {pid} lives")
        self._starts += 1
        everywhere = Knobs(NEUTRAL_WEIGHT, DEFAULT_SLICE_NS, frozenset(self._topology.cores))
        thread = FakeThread(pid, tid, name, Core(core), policy, knobs=everywhere, start_ticks=self._starts)
        self._threads[pid, tid] = thread
        return thread.id

    def end(self, vcpu: VcpuId) -> None:
        """The thread ends."""
        self._living(vcpu)
        del self._threads[vcpu.pid, vcpu.tid]

    def advance(self, length_ns: int, behaviour: Iterable[tuple[VcpuId, Stretch]] = ()) -> None:
        """Time passes. Threads that are not named sleep."""
        self._clock_ns += length_ns
        did = dict(behaviour)
        for numbers, thread in self._threads.items():
            stretch = did.get(thread.id, Stretch())
            total = thread.counters
            self._threads[numbers] = replace(
                thread,
                counters=Stretch(
                    total.on_cpu_ns + stretch.on_cpu_ns,
                    total.ready_ns + stretch.ready_ns,
                    total.dispatches + stretch.dispatches,
                    stretch.state,
                ),
            )

    def move(self, vcpu: VcpuId, core: int) -> None:
        """The kernel runs the thread on another core."""
        thread = self._living(vcpu)
        self._threads[vcpu.pid, vcpu.tid] = replace(thread, core=Core(core))

    def meddle(self, vcpu: VcpuId, knob: Knob, value: KnobValue) -> None:
        """Somebody else writes a knob. A weight or latency that we do not hold is missing in the next look,
        so that policies forget what it was."""
        self._set(vcpu, knob, value)
        is_told_so = knob in (Knob.WEIGHT, Knob.RESCHEDULING_LATENCY) and vcpu in self._managed
        if is_told_so and (vcpu, knob) not in self._held:
            self._anew.add((vcpu, knob))

    def turn(self, vcpu: VcpuId, policy: str) -> None:
        """Somebody changes the thread's scheduling policy; only "fair" ones are ours."""
        thread = self._living(vcpu)
        self._threads[vcpu.pid, vcpu.tid] = replace(thread, policy=policy)

    def unplug(self, core: int) -> None:
        """A core goes away."""
        self._topology = self._topology.without(Core(core))

    def knobs_of(self, vcpu: VcpuId) -> Knobs:
        """What the fake kernel holds, whoever wrote it."""
        return self._living(vcpu).knobs

    def quota_of(self, vcpu: VcpuId) -> int:
        """What the fake kernel lets it use, in millionths of a core, whoever wrote it; 0: no quota."""
        return self._living(vcpu).quota_ppm

    def prior_of(self, vcpu: VcpuId, knob: Knob) -> KnobValue | None:
        """What it keeps in order to put it back: its journal. None: it does not hold that knob."""
        held = self._held.get((vcpu, knob))
        return None if held is None else held.prior

    # The Host protocol.

    def observe(self, roster: Sequence[RosterEntry]) -> Snapshot:
        """The state of every vCPU of the roster now."""
        self._notice_foreign_writes()
        taken: set[Numbers] = set()
        workloads: list[Workload] = []
        seen: list[FakeThread] = []
        for entry in roster:
            mine = list(self._present(entry, taken))
            taken.update((one.pid, one.tid) for one in mine)
            seen += mine
            vcpus = tuple(Vcpu(one.id, one.name, self._allowed(one)) for one in mine)
            share = entry.share or NEUTRAL_WEIGHT * max(1, len(mine))
            workloads.append(Workload(entry.name, share, vcpus, wish=entry.wish))
        managed = {one.id for one in seen}
        self._put_back([key for key in self._held if key[0] not in managed])
        self._managed = managed
        shown = {one.id: self._shown(one) for one in seen}
        self._anew.clear()
        return Snapshot(
            self._clock_ns,
            self._topology,
            tuple(workloads),
            {one.id: _counters(one) for one in seen},
            shown,
            dict(self._limits(workloads)),
            unwatched=self._capabilities.wake_edges and not self._watching,
        )

    def watch(self, wanted: bool) -> None:
        """Follow wake-ups, or say that they are not."""
        self._watching = wanted

    def apply(self, changes: Sequence[Change]) -> tuple[Result, ...]:
        """Check, then write exactly."""
        return tuple(self._apply(change) for change in changes)

    def restore(self) -> Restored:
        """Put every held knob back."""
        return self._put_back(list(self._held))

    def notices(self) -> tuple[str, ...]:
        """It has nothing to say."""
        return ()

    def shortfall(self) -> Shortfall:
        """It has room for everybody."""
        return Shortfall()

    def close(self) -> None:
        """Put everything back."""
        self.restore()

    def _apply(self, change: Change) -> Result:
        thread = self._threads.get((change.vcpu.pid, change.vcpu.tid))
        key = (change.vcpu, change.knob)
        if thread is None or thread.id != change.vcpu or change.vcpu not in self._managed:
            return Result(change, Outcome.VANISHED, "not managed (any more)")
        if thread.policy != "fair":
            return Result(change, Outcome.REJECTED, f"not touched: {thread.policy}")
        if key in self._anew:
            return Result(change, Outcome.YIELDED, f"somebody else set its {change.knob}")
        present = _value(thread, self._shown(thread), change.knob)
        if present is None or key in self._yielded:
            return Result(change, Outcome.YIELDED, "not ours to write")
        if isinstance(change.new, frozenset) and not (change.new and change.new <= self._allowed(thread)):
            return Result(change, Outcome.REJECTED, "outside the cores that the thread may use")
        if self._dry_run:
            return Result(change, Outcome.DRY_RUN)
        held = self._held.get(key)
        if change.knob is Knob.CAP and not change.new:
            self._put_back([key] if held else [])
            return Result(change, Outcome.APPLIED)
        self._held[key] = _Held(held.prior if held else present, change.new)
        self._set(change.vcpu, change.knob, change.new)
        self.writes.append(change)
        return Result(change, Outcome.APPLIED)

    def _put_back(self, keys: Sequence[tuple[VcpuId, Knob]]) -> Restored:
        put_back = vanished = 0
        left_alone: list[str] = []
        for vcpu, knob in keys:
            held = self._held.pop((vcpu, knob))
            thread = self._threads.get((vcpu.pid, vcpu.tid))
            if thread is None or thread.id != vcpu:
                vanished += 1
            elif _value(thread, thread.knobs, knob) == held.ours:
                self._set(vcpu, knob, held.prior)
                put_back += 1
            else:
                left_alone.append(f"{knob} of thread {vcpu.tid}: somebody else set it since")
        return Restored(put_back, tuple(left_alone), vanished, ())

    def _notice_foreign_writes(self) -> None:
        """What somebody else wrote over ours is theirs from now on; but over a quota that was given it is
        what is given now."""
        for (vcpu, knob), held in tuple(self._held.items()):
            thread = self._threads.get((vcpu.pid, vcpu.tid))
            if thread is None or thread.id != vcpu:
                del self._held[vcpu, knob]
            elif _value(thread, thread.knobs, knob) != held.ours:
                del self._held[vcpu, knob]
                if knob is not Knob.CAP or not held.prior:
                    self._yielded.add((vcpu, knob))

    def _limits(self, workloads: Iterable[Workload]) -> Iterator[tuple[str, Limits]]:
        """Of those whose vCPUs have quotas of their own."""
        for workload in workloads:
            own = {vcpu.id: self._own(vcpu.id) for vcpu in workload.vcpus}
            if own and all(one.given_ppm for one in own.values()):
                yield workload.name, Limits(0, 0, 0, own)

    def _own(self, vcpu: VcpuId) -> OwnLimit:
        held, quota_ppm = self._held.get((vcpu, Knob.CAP)), self._living(vcpu).quota_ppm
        if held and isinstance(held.ours, int) and isinstance(held.prior, int):
            return OwnLimit(held.ours, 0, held.prior)
        return OwnLimit(0, 0, quota_ppm)

    def _present(self, entry: RosterEntry, taken: Collection[Numbers]) -> Iterator[FakeThread]:
        """Those of a workload's threads that are there, are who they should be, and may be touched."""
        for member in entry.members():
            thread = self._threads.get(member.numbers)
            if thread is None or member.numbers in taken or thread.policy != "fair":
                continue
            if member.is_(thread.id):
                self._terms[thread.id] = member.terms
                yield thread

    def _allowed(self, thread: FakeThread) -> frozenset[Core]:
        held = self._held.get((thread.id, Knob.AFFINITY))
        mask = held.prior if held else thread.knobs.affinity
        terms = self._terms.get(thread.id)
        allowed = mask if isinstance(mask, frozenset) else frozenset()
        return allowed if terms is None or terms.cores is None else allowed & terms.cores

    def _shown(self, thread: FakeThread) -> Knobs:
        can = self._capabilities
        vcpu, hidden = thread.id, self._yielded | self._anew
        return Knobs(
            thread.knobs.weight if can.weight and (vcpu, Knob.WEIGHT) not in hidden else None,
            thread.knobs.rescheduling_latency_ns
            if can.rescheduling_latency and (vcpu, Knob.RESCHEDULING_LATENCY) not in hidden
            else None,
            thread.knobs.affinity if can.affinity and (vcpu, Knob.AFFINITY) not in hidden else None,
        )

    def _living(self, vcpu: VcpuId) -> FakeThread:
        thread = self._threads.get((vcpu.pid, vcpu.tid))
        if thread is None or thread.id != vcpu:
            raise ValueError(f"no such thread: {vcpu}")
        return thread

    def _set(self, vcpu: VcpuId, knob: Knob, value: KnobValue) -> None:
        thread = self._living(vcpu)
        knobs = thread.knobs
        match knob, value:
            case Knob.WEIGHT, int():
                knobs = knobs._replace(weight=value)
            case Knob.RESCHEDULING_LATENCY, int():
                knobs = knobs._replace(rescheduling_latency_ns=value)
            case Knob.AFFINITY, frozenset():
                knobs = knobs._replace(affinity=value)
            case Knob.CAP, int():
                self._threads[vcpu.pid, vcpu.tid] = replace(thread, quota_ppm=value)
                return
            case _:
                raise ValueError(f"{value!r} is no value for {knob}")
        self._threads[vcpu.pid, vcpu.tid] = replace(thread, knobs=knobs)


def _counters(thread: FakeThread) -> Counters:
    on_cpu_ns, ready_ns, dispatches, state = thread.counters
    return Counters(on_cpu_ns, ready_ns, dispatches, state, thread.core)


def _value(thread: FakeThread, knobs: Knobs, knob: Knob) -> KnobValue | None:
    match knob:
        case Knob.WEIGHT:
            return knobs.weight
        case Knob.RESCHEDULING_LATENCY:
            return knobs.rescheduling_latency_ns
        case Knob.AFFINITY:
            return knobs.affinity
        case Knob.CAP:
            return thread.quota_ppm
