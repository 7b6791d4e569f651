"""The managed threads: following the roster, adopting who comes, letting go who leaves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress

from ...knobs.groups import CGROUP
from ...knobs.masks import AFFINITY
from ...knobs.quotas import QUOTA
from ...linux import affinity, procfs
from ...linux.errors import ThreadGone
from ...model import Core, Knob, Knobs, Restored, Vcpu, VcpuId, Workload
from ...roster import Member, RosterEntry
from ..host import MOST_THREADS
from . import shares
from .arrivals import Arrivals
from .company import has_to_itself
from .interface import Adopts
from .looks import in_turn
from .notices import Notices
from .own_groups import OwnGroups
from .places import Attended, Numbers, attended, change_of
from .put_back import PutBack, close_weight
from .settling import Settling
from .share_watch import ShareWatch
from .thread import ManagedThread
from .weight_watch import WeightWatch

RETRIES = 32
"""Of those who were left alone, so many are asked again at once, in turn: 2 ms."""


class Crew:
    """Who is managed, by workload, and who is not, and why."""

    def __init__(
        self,
        adoption: Adopts,
        put_back: PutBack,
        groups: OwnGroups | None,
        watch: WeightWatch,
        notices: Notices,
        *,
        nested_weight: bool = True,
        most: int = MOST_THREADS,
    ) -> None:
        self._adoption = adoption
        self._put_back = put_back
        self._custody = put_back.custody
        self._groups = groups
        self._watch = watch
        self._shares = ShareWatch()
        self._notices = notices
        self._nested_weight = nested_weight
        self._most = most
        self._arrivals = Arrivals()
        self._settling = Settling(adoption, watch, self._spare_weight)
        self._turn_of_skipped = 0
        self.left_out: Mapping[str, int] = {}
        """By workload: how many of its threads are too many to be attended to."""
        self.homes: dict[str, str] = {}
        """The innermost group around all threads of each workload that has one for itself."""
        self._roster: tuple[RosterEntry, ...] = ()
        self._set_down = False
        self._threads: dict[Numbers, ManagedThread] = {}
        self.by_id: dict[VcpuId, ManagedThread] = {}
        self.knobs: dict[VcpuId, Knobs] = {}
        self._anew: dict[tuple[VcpuId, Knob], None] = {}
        self.skipped: dict[Numbers, str] = {}
        """Threads of the roster that are left alone, and why."""

    def differs(self, roster: Sequence[RosterEntry]) -> bool:
        """Is this another roster than the one followed last?"""
        return self._set_down or (roster is not self._roster and tuple(roster) != self._roster)

    def follow(self, roster: Sequence[RosterEntry], clock_ns: int, *, again: bool = False) -> None:
        """Adopt whom the roster names, as far as there is room and time, and let go whom it does not name.
        `again`: ask some of those who were left alone, too."""
        self.show_settled()
        self._roster = tuple(roster)
        again_all, self._set_down = self._set_down, False
        rows = attended(self._roster, self._threads.keys() | self.skipped.keys(), self._most)
        self._say_who_is_left_out(rows)
        wanted = {numbers: (member, row.workload) for row in rows for numbers, member in row.members.items()}
        unwanted = [one for numbers, one in self._threads.items() if numbers not in wanted]
        self.let_go([one for one in unwanted if not self._ended_beside_main(one)])
        for numbers in [numbers for numbers in self.skipped if numbers not in wanted]:
            del self.skipped[numbers]
        for member, workload in wanted.values():
            thread = self._threads.get(member.numbers)
            if thread is not None and (member.terms != thread.terms or not member.is_(thread.id)):
                self._agree(thread, member, workload)
        retried = tuple(self.skipped) if again_all else self._some_skipped() if again else ()
        for numbers in (*self._arrivals.admit(rows, self._is_known, clock_ns), *retried):
            self._adopt(*wanted[numbers])

    def let_go(self, threads: Sequence[ManagedThread]) -> None:
        """Put their knobs back, and manage them no longer. What cannot be put back now is in custody."""
        if threads:
            restored = self._put_back.restore(threads)
            for what in restored.failed:
                self._notices.say("could not be put back", f"could not be put back: {what}")
            for line in restored.waiting:
                self._notices.say("waits to be put back", line)
        for thread in threads:
            self._forget(thread)
        self._settling.ask_those_left(self.threads())

    def restore(self) -> Restored:
        """Put everything back. Whoever keeps something of ours is not managed until that is back, too."""
        restored = self._put_back.restore_all(self.threads())
        for thread in self.threads():
            if thread.held:
                self._put_down(thread)
        return restored

    def see_to_custody(self) -> None:
        """Try again to put back what could not be."""
        self._custody.see_to_some()

    def lose(self, gone: Sequence[ManagedThread]) -> None:
        """They ended."""
        lost = {thread.id: thread for thread in gone}
        for main in gone:
            if _taken_over(main):
                siblings = [one for one in self._threads.values() if _is_dead_sibling(one, main)]
                # BPF's seats belong to threads, not to numbers: the one that is not lost is it.
                it = [one for one in siblings if one.id not in lost]
                self._put_back.hand_over(main, it or siblings)
                lost.update((one.id, one) for one in it)
        for thread in lost.values():
            self._put_back.bury(thread)
            self._forget(thread)
        self._settling.ask_those_left(self.threads())

    def turn_away(self, thread: ManagedThread, reason: str) -> None:
        """It must not be managed any more."""
        self._skip((thread.id.pid, thread.id.tid), thread.workload, reason)
        self.let_go((thread,))

    def threads(self) -> tuple[ManagedThread, ...]:
        """All managed threads."""
        return tuple(self._threads.values())

    def has_waiting(self) -> bool:
        """Is there anybody whom there was no time to adopt yet?"""
        return self._arrivals.waiting

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
        if AFFINITY not in thread.held:
            allowed = thread.within(self._mask(thread))
            if not thread.kept.alive():
                return False  # the next sample loses it, and the mask may be another's
            if allowed != thread.vcpu.allowed:
                thread.allow(allowed)
                changed = True
        self._check_group(thread)
        moved = self._settling.ask(thread, self._threads.values())
        return self._settling.ask_those_left(self.threads()) or moved or changed

    def ask_some_crowded(self) -> bool:
        """Has somebody who shares a group another place for the weight? True: workloads may differ now."""
        return self._settling.ask_some(self.threads()) | self._settling.ask_those_left(self.threads())

    def show_settled(self) -> bool:
        """What was found anew in the last look is shown from now on. True: there is something."""
        return self._settling.show(self.by_id)

    def take_anew(self) -> None:
        """Read the knobs that others have set while we did not hold them; this look has none of them yet."""
        for who, knob in self._anew:
            if who in self.by_id:
                self._settling.read_anew(self.by_id[who], knob)
        self._anew.clear()

    @staticmethod
    def _mask(thread: ManagedThread) -> frozenset[Core]:
        """Of whoever has its number."""
        try:
            return frozenset(map(Core, affinity.get(thread.id.tid)))
        except OSError:
            return frozenset()

    def _check_group(self, thread: ManagedThread) -> None:
        """A group that cannot be read now is asked again when its thread's turn comes."""
        place, hierarchy = thread.weight, self._adoption.hierarchy
        is_in_use = thread.knobs.weight is not None or QUOTA in thread.held
        if place is None or hierarchy is None or not is_in_use:
            return
        with suppress(OSError):
            if place.origin is not None:
                if CGROUP in thread.held and self._groups is not None:
                    self._groups.evict(place, thread.id)
            elif not has_to_itself(hierarchy, place.group, thread.id, thread.terms):
                self._not_alone(thread, place.group)

    def _not_alone(self, thread: ManagedThread, group: str) -> None:
        """The group's weight is somebody else's business, too, from now on."""
        is_ours = thread.knobs.weight is not None
        is_spared = self._spare_weight(thread)
        thread.show(QUOTA, None)
        cap = thread.held.get(QUOTA)
        if cap is not None and not self._put_back.restore_one(thread, cap):
            self._put_down(thread)
            is_spared = False
        who = f"{thread.vcpu.name!r} (thread {thread.id.tid})"
        company = "is not alone" if not thread.vcpu.emulator else "is not alone with its helpers"
        line = f"{who} {company} in {group} any more: the group's weight is left alone"
        self._notices.say(f"workload {thread.workload}: not alone in their groups", line)
        if is_ours and is_spared:
            self._settling.settle(thread)

    def _is_known(self, numbers: Numbers) -> bool:
        return numbers in self._threads or numbers in self.skipped

    def _some_skipped(self) -> Sequence[Numbers]:
        self._turn_of_skipped += 1
        return in_turn(tuple(self.skipped), self._turn_of_skipped, RETRIES)

    def _say_who_is_left_out(self, rows: Sequence[Attended]) -> None:
        for row in rows:
            if line := change_of(row, self.left_out.get(row.workload, 0), self._most):
                self._notices.say(f"workload {row.workload}: threads left alone for want of room", line)
        self.left_out = {row.workload: row.left_out for row in rows if row.left_out}

    def _spare_weight(self, thread: ManagedThread) -> bool:
        """From now on it has none that is ours to write. False: it keeps one that cannot be put back."""
        kind = thread.weight_kind()
        if kind is None or thread.knobs.weight is None:
            return True
        held = thread.held.get(kind)
        if held is not None and not self._put_back.restore_one(thread, held):
            self._put_down(thread)
            return False
        thread.show(kind, None)
        return True

    def _ended_beside_main(self, thread: ManagedThread) -> bool:
        """Then the sampler says in a moment whether it ended, or took over the main thread's number."""
        pid, tid, _ = thread.id
        return pid != tid and (pid, pid) in self._threads and not thread.kept.alive()

    def _adopt(self, member: Member, workload: str) -> None:
        numbers, terms, _ = member
        try:
            found = self._custody.redeem(numbers) or self._adoption.adopt(*numbers, terms)
        except ThreadGone:
            return
        except OSError as error:
            found = f"cannot be read: {error.strerror}"
        if isinstance(found, str):
            self._skip(numbers, workload, found)
            return
        if not member.is_(found.id):
            # It has the number of the thread that discovery saw, which has ended.
            self._put_back.restore((found,))
            found.kept.close()
            return
        if terms is not None:
            found.agree(terms, found.vcpu.allowed)
        self.skipped.pop(numbers, None)
        found.workload = workload
        self._threads[numbers] = found
        self.by_id[found.id] = found
        found.post_on(self.knobs, self._anew)
        for other in self.threads():
            if other is not found and other.weight is not None and other.weight.group == found.group:
                self._check_group(other)

    def _agree(self, thread: ManagedThread, member: Member, workload: str) -> None:
        """The terms of a managed thread are others now. A mask of ours that they forbid goes."""
        terms = member.terms
        if terms is None or thread.terms is None or not member.is_(thread.id):
            self.let_go((thread,))
            self._adopt(member, workload)
            return
        held = thread.held.get(AFFINITY)
        forbidden = held is not None and terms.cores is not None and not thread.keeps(terms.cores)
        if held is not None and forbidden and not self._put_back.restore_one(thread, held):
            self._put_down(thread)
            return
        present = self._mask(thread)
        if not thread.kept.alive():
            return  # the next sample loses it
        thread.agree(terms, None if AFFINITY in thread.held else present)

    def _put_down(self, thread: ManagedThread) -> None:
        """It keeps something of ours that cannot be put back now."""
        self._skip((thread.id.pid, thread.id.tid), thread.workload, "holds a value of ours that is not back")
        self._set_down = True
        self._forget(thread)

    def _skip(self, numbers: Numbers, workload: str, reason: str) -> None:
        if self.skipped.get(numbers) != reason:
            pid, tid = numbers
            line = f"workload {workload}: thread {tid} of process {pid} is left alone: {reason}"
            self._notices.say(f"workload {workload}: threads left alone, {reason}", line)
        self.skipped[numbers] = reason

    def _forget(self, thread: ManagedThread) -> None:
        self._threads.pop((thread.id.pid, thread.id.tid), None)
        self.by_id.pop(thread.id, None)
        self.knobs.pop(thread.id, None)
        self._settling.left(thread.group)
        self._custody.take(thread.outstanding())
        place = thread.weight
        if place is not None and place.origin is not None and place.made and self._groups is not None:
            self._groups.linger(place, frozenset({thread.id.pid}))
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
        self.homes = {}
        for (entry, threads), home, nested in zip(crews, homes, shares.nested(homes), strict=True):
            vcpus: tuple[Vcpu, ...] = tuple(thread.vcpu for thread in threads)
            inner = [thread.group for thread in threads if not thread.vcpu.emulator] if entry.home else ()
            if nested and not self._nested_weight:
                for thread in threads:
                    self._spare_weight(thread)
            if home is not None and nested:
                self.homes[entry.name] = shares.around(home, inner)
            watched |= shares.files(hierarchy, home, entry.share, inner)
            place = shares.standing(hierarchy, home, len(threads), entry.share, inner)
            yield Workload(entry.name, place.share, vcpus, place.quota_cores, nested, entry.wish)
        ours = {thread.weight.file for thread in self._threads.values() if thread.weight is not None}
        self._shares.follow(frozenset(watched - ours))


def _taken_over(thread: ManagedThread) -> bool:
    """Does a main thread that has ended seem to live? Then execve gave its number to a sibling."""
    pid, tid, start_ticks = thread.id
    try:
        stat = procfs.read_stat(pid, tid)
    except ThreadGone:
        return False
    return pid == tid and stat.start_ticks == start_ticks and not stat.has_ended


def _is_dead_sibling(one: ManagedThread, main: ManagedThread) -> bool:
    return one is not main and one.id.pid == main.id.pid and not one.kept.alive()
