"""A host of Linux threads, whatever its kernel offers (interface.py).

Each period: follow the roster, look at every thread, read held knobs
back (foreign.py), hand out a Snapshot. Between two changes of the roster nothing here is built
anew: the Snapshot gets shallow copies of two dictionaries.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

from ...bpf.edges import NoEdges, WakeEdges
from ...linux import cgroupfs, procfs
from ...linux.cpus import SYSFS
from ...linux.errors import HierarchyMissing
from ...linux.limits import raise_open_files
from ...model import (
    Capabilities,
    Change,
    Counters,
    Knob,
    Level,
    Outcome,
    Restored,
    Result,
    Shortfall,
    Snapshot,
    ThreadState,
    VcpuId,
    Workload,
)
from ...roster import RosterEntry
from ...safety.kernel import Kernel, LinuxKernel
from ..host import BY_DEFAULT, CAPS_ON_V1, HostSettings
from .act import Actuator
from .adopt import Adoption
from .ahead import WriteAhead
from .bursts import Bursts
from .cores import CoreWatch
from .crew import Crew
from .custody import Custody
from .foreign import ReadBack
from .interface import KernelInterface
from .limits import LimitLooks
from .looks import LookedAt, Looks
from .notices import Notices
from .own_groups import OwnGroups
from .put_back import PutBack
from .thread import ManagedThread
from .wakers import Wakers
from .weight_watch import WeightWatch

RETRY_PERIODS = 12
"""How often those who were left alone, or who share their group, are asked again: about once a second at
80 ms."""

_NO_CAPS = "it has a CPU limit, but no thread has a cgroup of its own ([host] own_cgroups = true makes them)"


class ThreadsHost:
    """A Host whose vCPUs are threads of this machine."""

    def __init__(
        self,
        journal: WriteAhead,
        capabilities: Capabilities,
        interface: KernelInterface,
        settings: HostSettings = BY_DEFAULT,
        *,
        edges: WakeEdges | None = None,
        proc: str = procfs.PROC,
        sysfs: str = SYSFS,
        kernel: Kernel | None = None,
    ) -> None:
        self._edges = edges or NoEdges("wake-up sources are not asked for")
        self._capabilities = _with(self._edges, capabilities)
        self._journal = journal
        self._notices = notices = Notices()
        self._wakers = Wakers(self._edges, notices)
        self._interface = interface
        self._watch, hierarchy = WeightWatch(), _hierarchy(proc)
        self._hierarchy = hierarchy
        self._cores = CoreWatch(settings.cpus, sysfs)
        own, nice = settings.own_groups, settings.nice and capabilities.nice
        kernel = kernel or LinuxKernel()
        self._groups = groups = OwnGroups(hierarchy, journal, kernel, notices, proc) if hierarchy else None
        adoption = interface.adoption(Adoption(capabilities, hierarchy, own, journal, proc, nice))
        put_back = PutBack(journal, groups, kernel, Custody(journal, kernel))
        self._crew = Crew(
            adoption,
            put_back,
            groups,
            self._watch,
            notices,
            nested_weight=capabilities.nested_weight,
            most=settings.most,
        )
        self._read_back = ReadBack(journal, settings.on_foreign_write, self._watch, notices, proc)
        self._actuator = Actuator(
            journal, groups, hierarchy, self._watch, put_back, settings.dry_run, interface, proc
        )
        self._counters: dict[VcpuId, Counters] = {}
        self._sampler: Looks = interface.sampler((), self._counters)
        self._workloads: tuple[Workload, ...] = ()
        looks = (settings.caps or settings.burst) and capabilities.cap
        self._limits, self._says_no_caps = LimitLooks(hierarchy if looks else None), settings.caps and not own
        writes = looks and not settings.dry_run
        self._bursts = Bursts(journal, kernel, notices, proc) if writes and settings.burst else None
        self._turn, self._stale = 0, False
        raise_open_files()
        if writes and settings.caps:
            self._say_of_v1()

    def _say_of_v1(self) -> None:
        if self._hierarchy is not None and self._hierarchy.version == 1:
            self._notices.say("caps on cgroup v1", f"caps on cgroup v1: {CAPS_ON_V1}")

    @property
    def capabilities(self) -> Capabilities:
        """What this host can do, as it was probed."""
        return self._capabilities

    @property
    def skipped(self) -> Mapping[tuple[int, int], str]:
        """Threads (pid, tid) of the roster that are left alone, and why."""
        return self._crew.skipped

    def notices(self) -> tuple[str, ...]:
        """What an operator should hear, each once."""
        return (*self._notices.take(), *self._interface.notices())

    def shortfall(self) -> Shortfall:
        """What is left out for want of room."""
        wakers = self._wakers
        return Shortfall(self._crew.left_out, wakers.unheard, wakers.lost, wakers.missed)

    def observe(self, roster: Sequence[RosterEntry]) -> Snapshot:
        """The state of every vCPU of the roster now."""
        self._turn += 1
        clock_ns = time.monotonic_ns()
        again = self._turn % RETRY_PERIODS == 0 and self._crew.has_skipped()
        if again or self._stale or self._crew.has_waiting() or self._crew.differs(roster):
            self._crew.follow(roster, clock_ns, again=again)
            self._rebuild()
            clock_ns = time.monotonic_ns()
        elif self._crew.show_settled():
            self._list_workloads()
        sample = self._sampler.take(clock_ns)
        if sample.gone or sample.turned:
            self._lose(sample)
        self._look_at_knobs(sample)
        self._stale = bool(sample.gone)
        counters = self._wakers.added_to(self._counters)
        knobs, limits = self._crew.knobs.copy(), self._limits.take()
        seen = self._workloads, counters, knobs, limits
        return Snapshot(clock_ns, self._cores.topology(), *seen, unwatched=self._wakers.unwatched)

    def watch(self, wanted: bool) -> None:
        """Follow wake-ups from now on, or leave that out."""
        self._wakers.watch(wanted)

    def apply(self, changes: Sequence[Change]) -> tuple[Result, ...]:
        """Journal, check identity, write. One Result a Change, in order."""
        results = self._actuator.apply(changes, self._crew.by_id)
        if any(one.outcome is Outcome.REJECTED and one.change.knob is Knob.AFFINITY for one in results):
            self._list_workloads()  # somebody else may have changed what is allowed
        return results

    def restore(self) -> Restored:
        """Put every knob that we hold back to its prior value. Idempotent."""
        restored = self._crew.restore()
        self._stale = True  # who goes on observing gets all that is written once again
        return restored if self._bursts is None else restored.with_more(self._bursts.restore())

    def close(self) -> None:
        """Put everything back and let all descriptors go."""
        if self._bursts is not None:
            self._bursts.restore()
        self._crew.close()
        self._watch.close()
        self._limits.close()
        self._cores.close()
        self._edges.close()
        self._interface.close()

    def _lose(self, sample: LookedAt) -> None:
        self._crew.lose(sample.gone)
        for thread, reason in sample.turned:
            self._crew.turn_away(thread, reason)
        self._rebuild()

    def _rebuild(self) -> None:
        """The set of threads differs: the hot path gets new tables."""
        threads = self._crew.threads()
        self._counters = {thread.id: self._counters.get(thread.id, _unseen(thread)) for thread in threads}
        self._sampler = self._interface.sampler(threads, self._counters)
        self._list_workloads()
        self._wakers.follow(self._workloads)

    def _list_workloads(self) -> None:
        """What they may use may be something else now."""
        self._workloads = self._crew.workloads()
        self._limits.follow(self._crew.homes, self._crew.threads())
        for workload in self._limits.uncappable() if self._says_no_caps else ():
            self._notices.say("workloads without caps", f"no caps for {workload}: {_NO_CAPS}")
        if self._bursts is not None:
            self._bursts.follow(self._limits.of_their_own(self._crew.homes))

    def _look_at_knobs(self, sample: LookedAt) -> None:
        """Knobs that somebody else may have written, and groups whose thread has ended."""
        if self._groups is not None:
            self._groups.sweep()
        self._crew.see_to_custody()
        differs = self._read_back.look_at(sample.suspects)
        differs |= self._crew.shares_changed()
        if self._turn % RETRY_PERIODS == 0:
            differs |= self._crew.ask_some_crowded()
        if suspects := self._limits.suspects():
            self._read_back.look_at_quotas(suspects)
            differs |= self._limits.given_anew(suspects)
        for thread in sample.closely:
            if thread.id in self._crew.by_id:
                differs |= self._read_back.look_closely(thread)
                differs |= self._crew.look_closely(thread)
        if differs:
            self._list_workloads()
        self._read_back.look_at_weights()
        self._crew.take_anew()


def _unseen(thread: ManagedThread) -> Counters:
    return Counters(0, 0, 0, ThreadState.UNKNOWN, thread.first_core)


def _with(edges: WakeEdges, probed: Capabilities) -> Capabilities:
    return replace(probed, wake_edges=edges.level is not Level.NONE, wake_edges_note=edges.note)


def _hierarchy(proc: str) -> cgroupfs.Hierarchy | None:
    try:
        return cgroupfs.find_hierarchy(proc)
    except HierarchyMissing:
        return None
