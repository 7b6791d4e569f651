"""The managed threads: following the roster, adopting who comes, letting go who leaves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...linux import affinity
from ...linux.errors import ThreadGone
from ...linux.knob import NativeKnob
from ...model import Core, Knobs, Vcpu, VcpuId, Workload
from ..host import RosterEntry, Terms
from . import shares
from .adopt import alone
from .fittings import Adopts
from .owngroups import OwnGroups
from .putback import PutBack, close_weight
from .sharewatch import ShareWatch
from .thread import ManagedThread
from .weightwatch import WeightWatch

Numbers = tuple[int, int]
"""(pid, tid): who a thread is until it is identified."""


class Crew:
    """Who is managed, by workload, and who is not, and why."""

    def __init__(
        self,
        adoption: Adopts,
        put_back: PutBack,
        groups: OwnGroups | None,
        watch: WeightWatch,
        notices: list[str],
    ) -> None:
        self._adoption = adoption
        self._put_back = put_back
        self._groups = groups
        self._watch = watch
        self._shares = ShareWatch()
        self._notices = notices
        self._roster: tuple[RosterEntry, ...] = ()
        self._threads: dict[Numbers, ManagedThread] = {}
        self.by_id: dict[VcpuId, ManagedThread] = {}
        self.knobs: dict[VcpuId, Knobs] = {}
        self.skipped: dict[Numbers, str] = {}
        """Threads of the roster that are left alone, and why."""

    def differs(self, roster: Sequence[RosterEntry]) -> bool:
        """Is this another roster than the one followed last?"""
        return roster is not self._roster and tuple(roster) != self._roster

    def follow(self, roster: Sequence[RosterEntry]) -> None:
        """Adopt whom the roster names, let go whom it does not."""
        self._roster = tuple(roster)
        wanted = {numbers for entry in self._roster for numbers in entry.threads}
        self.let_go([one for numbers, one in self._threads.items() if numbers not in wanted])
        for numbers in [numbers for numbers in self.skipped if numbers not in wanted]:
            del self.skipped[numbers]
        named: set[Numbers] = set()
        for entry in self._roster:
            for numbers, terms in entry.terms_of():
                if numbers in named:
                    continue
                named.add(numbers)
                if numbers not in self._threads:
                    self._adopt(numbers, entry.name, terms)
                elif terms != self._threads[numbers].terms:
                    self._agree(numbers, entry.name, terms)

    def let_go(self, threads: Sequence[ManagedThread]) -> None:
        """Put their knobs back, and manage them no longer."""
        if threads:
            restored = self._put_back.restore(threads)
            self._notices.extend(f"could not be put back: {what}" for what in restored.failed)
        for thread in threads:
            self._forget(thread)

    def lose(self, thread: ManagedThread) -> None:
        """It ended."""
        self._put_back.bury(thread)
        self._forget(thread)

    def turn_away(self, thread: ManagedThread, reason: str) -> None:
        """It may not be touched any more. What we hold of it stays in the journal until the end."""
        self._skip((thread.id.pid, thread.id.tid), thread.vcpu.name, reason)
        self._forget(thread)

    def threads(self) -> tuple[ManagedThread, ...]:
        """All managed threads."""
        return tuple(self._threads.values())

    def has_skipped(self) -> bool:
        """Is there anybody who was left alone and might be adoptable by now?"""
        return bool(self.skipped)

    def shares_changed(self) -> bool:
        """Did somebody write a share or a quota? True: the workloads may differ now."""
        return self._shares.changed()

    def close(self) -> None:
        """Let everybody go, and end all watches."""
        self.let_go(self.threads())
        self._shares.close()

    def workloads(self) -> tuple[Workload, ...]:
        """The workloads of the managed threads, in the roster's order; empty ones, too."""
        return tuple(self._workloads())

    def look_closely(self, thread: ManagedThread) -> bool:
        """Has a mask that we do not hold changed, or the thread's group? True: the workloads differ now."""
        changed = False
        if NativeKnob.AFFINITY not in thread.held:
            try:
                allowed = thread.within(map(Core, affinity.get(thread.id.tid)))
            except ProcessLookupError:
                return False  # the next sample loses it
            if allowed != thread.vcpu.allowed:
                thread.allow(allowed)
                changed = True
        self._check_group(thread)
        return changed

    def _check_group(self, thread: ManagedThread) -> None:
        place, hierarchy = thread.weight, self._adoption.hierarchy
        if place is None or hierarchy is None or thread.knobs.weight is None:
            return
        if place.origin is not None:
            if NativeKnob.CGROUP in thread.held and self._groups is not None:
                self._groups.evict(place, thread.id.tid)
        elif not alone(hierarchy, place.group, thread.id.tid):
            self._not_alone(thread, place.group)

    def _not_alone(self, thread: ManagedThread, group: str) -> None:
        """The group's weight is somebody else's business, too, from now on."""
        assert thread.weight is not None, "only a thread with a place for weights is asked"
        held = thread.held.get(thread.weight.kind)
        if held is not None:
            self._put_back.restore_one(thread, held)
        thread.show(thread.weight.kind, None)
        who = f"{thread.vcpu.name!r} (thread {thread.id.tid})"
        self._notices.append(f"{who} is not alone in {group} any more: its weight is left alone")

    def _adopt(self, numbers: Numbers, workload: str, terms: Terms | None) -> None:
        try:
            found = self._adoption.adopt(*numbers)
        except ThreadGone:
            return
        if isinstance(found, str):
            self._skip(numbers, workload, found)
            return
        if terms is not None:
            if found.id.start_ticks != terms.start_ticks:
                found.kept.close()  # it has the number of the thread that discovery saw, which has ended
                return
            found.agree(terms, found.vcpu.allowed)
        self.skipped.pop(numbers, None)
        self._threads[numbers] = found
        self.by_id[found.id] = found
        found.post_on(self.knobs)
        for other in self._threads.values():
            if other is not found and other.weight is not None and other.weight.group == found.group:
                self._check_group(other)

    def _agree(self, numbers: Numbers, workload: str, terms: Terms | None) -> None:
        """The terms of a managed thread are others now. A mask of ours that they forbid goes."""
        thread = self._threads[numbers]
        if terms is None or terms.start_ticks != thread.id.start_ticks:
            self.let_go((thread,))
            self._adopt(numbers, workload, terms)
            return
        held = thread.held.get(NativeKnob.AFFINITY)
        if held is not None and terms.cores is not None and not thread.keeps(terms.cores):
            self._put_back.restore_one(thread, held)
        try:
            present = frozenset(map(Core, affinity.get(thread.id.tid)))
        except ProcessLookupError:
            return  # the next sample loses it
        thread.agree(terms, None if NativeKnob.AFFINITY in thread.held else present)

    def _skip(self, numbers: Numbers, name: str, reason: str) -> None:
        if self.skipped.get(numbers) != reason:
            pid, tid = numbers
            self._notices.append(f"{name}: thread {tid} of process {pid} is left alone: {reason}")
        self.skipped[numbers] = reason

    def _forget(self, thread: ManagedThread) -> None:
        self._threads.pop((thread.id.pid, thread.id.tid), None)
        self.by_id.pop(thread.id, None)
        self.knobs.pop(thread.id, None)
        self._watch.drop(thread)
        close_weight(thread)
        thread.kept.close()

    def _workloads(self) -> Iterator[Workload]:
        taken: set[Numbers] = set()
        crews: list[tuple[RosterEntry, list[ManagedThread]]] = []
        for entry in self._roster:
            members = [one for one in entry.threads if one in self._threads and one not in taken]
            taken.update(members)
            threads = [self._threads[numbers] for numbers in members]
            crews.append((entry, threads))
        hierarchy = self._adoption.hierarchy
        homes = [
            entry.home or shares.home_of(hierarchy, (thread.group for thread in threads))
            for entry, threads in crews
        ]
        watched: set[str] = set()
        for (entry, threads), home, nested in zip(crews, homes, shares.nested(homes), strict=True):
            inner = [thread.group for thread in threads] if entry.home else ()
            watched |= shares.files(hierarchy, home, entry.share, inner)
            place = shares.standing(hierarchy, home, len(threads), entry.share, inner)
            vcpus: tuple[Vcpu, ...] = tuple(thread.vcpu for thread in threads)
            yield Workload(entry.name, place.share, vcpus, place.quota_cores, nested)
        ours = {thread.weight.file for thread in self._threads.values() if thread.weight is not None}
        self._shares.follow(frozenset(watched - ours))
