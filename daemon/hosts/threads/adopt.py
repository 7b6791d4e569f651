"""From a (pid, tid) pair to a managed thread: who it is, may we touch it, which knobs it has."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from dataclasses import dataclass, field

from ...knobs import knob
from ...knobs.groups import CGROUP
from ...knobs.knob import KnobRef
from ...knobs.nice import NICE
from ...knobs.policies import POLICY
from ...knobs.table import INHERITED
from ...knobs.weights import group_weight
from ...linux import affinity, cgroupfs, procfs, schedattr
from ...linux.errors import HierarchyMissing, ThreadGone
from ...linux.printable import printable
from ...model import NEUTRAL_WEIGHT, Capabilities, Core, Knob, Knobs, Vcpu, VcpuId
from ...roster import Terms
from .ahead import WriteAhead
from .company import has_to_itself
from .thread import ManagedThread, WeightPlace, why_not


@dataclass(frozen=True, slots=True)
class Adoption:
    """What adopting needs to know of the host."""

    capabilities: Capabilities
    hierarchy: cgroupfs.Hierarchy | None
    own_groups: bool
    journal: WriteAhead
    proc: str = procfs.PROC
    nice: bool = False
    last: dict[str, VcpuId] = field(default_factory=dict)
    """The group of the thread that was asked for last, and that thread."""

    def adopt(self, pid: int, tid: int, terms: Terms | None = None) -> ManagedThread | str:
        """See Adopts."""
        kept = procfs.KeptThread(pid, tid, self.proc)
        try:
            stat = kept.first_stat
            if stat.has_ended:
                raise ProcessLookupError  # the main thread of a process may lie there until the others end
            who = VcpuId(pid, tid, stat.start_ticks)
            reason = why_not(stat.policy, kernel_thread=stat.is_kernel_thread)
            if reason is not None and not self._is_by_us(who, stat.policy):
                kept.close()
                return reason
            return self._managed(who, kept, terms)
        except OSError as error:
            kept.close()
            if isinstance(error, ProcessLookupError):
                raise ThreadGone(f"{pid}/{tid}") from error
            return f"cannot be read: {error.strerror}"
        except BaseException:
            kept.close()
            raise

    def _is_by_us(self, who: VcpuId, policy: int) -> bool:
        """Was the thread born with a policy that we gave its parent?"""
        return self.journal.inherited(KnobRef(who, POLICY), policy) is not None

    def _managed(self, who: VcpuId, kept: procfs.KeptThread, terms: Terms | None) -> ManagedThread:
        stat = kept.first_stat
        for ref in self._born_with(who):
            self._disinherit(ref)
        allowed = frozenset(map(Core, affinity.get(who.tid)))
        capabilities = self.capabilities
        knobs = Knobs(
            None,
            schedattr.get(who.tid).slice_ns if capabilities.rescheduling_latency else None,
            allowed if capabilities.affinity else None,
        )
        vcpu = Vcpu(who, printable(stat.comm), allowed)
        thread = ManagedThread(vcpu, kept, 0, Core(stat.core), knobs, terms=terms)
        thread.knobs = knobs._replace(weight=self.settle(thread))
        return thread

    def settle(self, thread: ManagedThread) -> int | None:
        """See Adopts."""
        who = thread.id
        thread.group, thread.nice = self._group(who), schedattr.nice_of(who.tid)
        place = self._weight_place(who, thread.group, thread.nice, thread.terms)
        if place is not None and place.origin is not None and thread.terms is not None:
            place = None
        thread.weight, thread.crowded = place, place is None
        if place is not None:
            return weight_shown(place)
        is_emulator = thread.terms is not None and thread.terms.emulator
        if not self.nice or not self.capabilities.weight or thread.nice != 0 or is_emulator:
            return None  # what QEMU's main thread is niced to, all would be that it starts
        thread.take_up({NICE: NEUTRAL_WEIGHT})
        return NEUTRAL_WEIGHT

    def _born_with(self, who: VcpuId) -> Iterator[KnobRef]:
        """What a child has from its parent; the group first, because its weight depends on it."""
        if self.hierarchy is not None:
            yield KnobRef(who, CGROUP, self.hierarchy.mount)
        yield from (KnobRef(who, kind) for kind in INHERITED if kind is not CGROUP)

    def _disinherit(self, ref: KnobRef) -> None:
        """A knob that the thread was born with as ours gets what its parent's held before us: else ours would
        be taken for its own. Raises ThreadGone, or OSError."""
        prior = self.journal.inherited(ref, knob.read_known(ref, self.proc))
        if prior is not None:
            knob.put_back(ref, prior, self.proc)

    def _group(self, who: VcpuId) -> str:
        if self.hierarchy is None:
            return ""
        try:
            group = self.hierarchy.group_of(who.pid, who.tid, self.proc)
        except HierarchyMissing:
            return ""
        if cgroupfs.depth(group) > cgroupfs.DEEPEST:
            raise OSError(errno.ENAMETOOLONG, f"its group is nested more than {cgroupfs.DEEPEST} deep")
        return group

    def _weight_place(self, who: VcpuId, group: str, nice: int, terms: Terms | None) -> WeightPlace | None:
        """Where this thread's weight can be set: its group if it has that to itself, else one of our own.

        A group of our own starts with the neutral weight, so a thread that was niced keeps
        its place among its neighbours and gets none (docs/decisions/0005-own-groups.md).
        """
        hierarchy = self.hierarchy
        if hierarchy is None or not self.capabilities.weight or not group:
            return None
        kind = group_weight(hierarchy)
        if self._has_to_itself(hierarchy, group, who, terms):
            file = hierarchy.weight_file(group)
            return WeightPlace(kind, group, file) if _has_weight(file) else None
        if not self.own_groups or nice != 0:
            return None
        own = f"{group.rstrip('/')}/dasec-{who.tid}"
        return WeightPlace(kind, own, hierarchy.weight_file(own), origin=group, made=False)

    def _is_in(self, who: VcpuId, group: str) -> bool:
        try:
            return self._group(who) == group
        except ThreadGone:
            return False

    def _has_to_itself(
        self, hierarchy: cgroupfs.Hierarchy, group: str, who: VcpuId, terms: Terms | None
    ) -> bool:
        """As the function, but of thousands of threads that come at once to one group, only the first reads
        its list: cgroup v1 makes that anew each time, 2.7 ms for 4096 threads."""
        other = self.last.get(group)
        self.last.clear()
        self.last[group] = who
        may_share = terms is not None and terms.emulator
        if other is not None and other != who and not may_share and self._is_in(other, group):
            return False
        return has_to_itself(hierarchy, group, who, terms, self.proc)


def weight_shown(place: WeightPlace | None) -> int | None:
    """The model's weight of a place that we have not written to."""
    if place is None:
        return None
    if not place.made:
        return NEUTRAL_WEIGHT
    try:
        weight = place.kind.model(cgroupfs.read_weight(place.file))
    except (ThreadGone, OSError):
        return None
    return weight if isinstance(weight, int) else None


def _has_weight(file: str) -> bool:
    """A v2 group has one only if its parent hands cpu on; an idle group's reads 0 and refuses writes."""
    try:
        return cgroupfs.read_weight(file) > 0
    except (ThreadGone, OSError):
        return False


def number_held(thread: ManagedThread, which: Knob, proc: str) -> int:
    """What the kernel holds of such a knob, in the model's units. Raises ThreadGone, or OSError."""
    kind = thread.kind_of(which)
    value = thread.model_of(kind, knob.read_known(KnobRef(thread.id, kind), proc))
    assert isinstance(value, int), f"{kind} is a number"
    return value
