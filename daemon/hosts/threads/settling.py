"""Where each thread's weight is set, while others come to its group and go.

A thread that is alone in its group has the group's weight. With company it has one of its own in there, if
the host gives it any (adopt.py). A server that forks has company for as long as its child lives, so whoever
shares a group is asked again: at once when one of ours left it or was moved, else about once a second, in
turn. Of those that share it with another of ours nothing is read but the group that they are in, one of them
in a look (docs/decisions/0077-nice-inside-a-group.md).

A weight or latency that somebody sets before we ever wrote it comes to the policy in the same way: a look
without, then the new one (docs/decisions/0121-set-before-us.md).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress

from ...linux.errors import HierarchyMissing, ThreadGone
from ...linux.procfs import PROC
from ...model import Knob, VcpuId
from .adopt import number_held, weight_shown
from .company import has_to_itself
from .interface import Adopts
from .looks import in_turn
from .put_back import close_weight
from .thread import ManagedThread
from .weight_watch import WeightWatch

ASKED = 8
"""Of those that share their group with nobody of ours, so many are asked at once, in turn: 0.5 ms."""


class Settling:
    """Finds places anew. `spare`: puts a thread's weight back where it is; False: it could not."""

    def __init__(self, adoption: Adopts, watch: WeightWatch, spare: Callable[[ManagedThread], bool]) -> None:
        self._adoption = adoption
        self._watch = watch
        self._spare = spare
        self._turn = 0
        self._found: dict[tuple[VcpuId, Knob], int | None] = {}
        self._left: set[str] = set()

    def left(self, group: str) -> None:
        """One of ours is in that group no more."""
        self._left.add(group)

    def show(self, by_id: Mapping[VcpuId, ManagedThread]) -> bool:
        """What was found in the last look: weights of other places, and knobs that others have set. That look
        has told the policy that their threads had none, so it takes these for new. True: there are some."""
        found, self._found = self._found, {}
        for (who, knob), value in found.items():
            thread = by_id.get(who)
            if thread is None:
                continue
            kind = thread.weight_kind() if knob is Knob.WEIGHT else thread.kind_of(knob)
            if kind is not None:
                thread.show(kind, value)
        return bool(found)

    def read_anew(self, thread: ManagedThread, knob: Knob) -> None:
        """What it is now goes to the policy at the next look. One that cannot be read stays hidden."""
        with suppress(ThreadGone, OSError):
            is_of_group = knob is Knob.WEIGHT and thread.weight is not None
            found = weight_shown(thread.weight) if is_of_group else number_held(thread, knob, PROC)
            self._found[thread.id, knob] = found

    def settle(self, thread: ManagedThread) -> bool:
        """Find the place of a weight that was put back. True: the thread is in another group than it was."""
        self._watch.drop(thread)
        close_weight(thread)
        before, thread.crowded = thread.group, True
        with suppress(ThreadGone, OSError):
            self._found[thread.id, Knob.WEIGHT] = self._adoption.settle(thread)
        if thread.group == before:
            return False
        self.left(before)
        return True

    def ask(self, thread: ManagedThread, ours: Iterable[ManagedThread]) -> bool:
        """Has a thread that shares its group another one, or has its company gone? `ours`: all that are
        managed. True: it is in another group."""
        if not thread.crowded:
            return False
        with suppress(ThreadGone, HierarchyMissing, OSError):
            if self._has_another_place(thread, ours) and self._spare(thread):
                return self.settle(thread)
        return False

    def ask_some(self, ours: Sequence[ManagedThread]) -> bool:
        """Ask those whose company nobody tells us of. True: one is in another group."""
        self._turn += 1
        members: dict[str, int] = {}
        for one in ours:
            members[one.group] = members.get(one.group, 0) + 1
        asked = [one for one in ours if one.crowded and members[one.group] == 1]
        moved = False
        for one in in_turn(asked, self._turn, ASKED):
            moved |= self.ask(one, (one,))
        return moved

    def ask_those_left(self, ours: Sequence[ManagedThread]) -> bool:
        """Where one of ours left a group and one stays, that may be alone now. True: it is in another."""
        left, self._left = self._left, set()
        if not left:
            return False
        staying: dict[str, list[ManagedThread]] = {}
        for one in ours:
            if one.group in left:
                staying.setdefault(one.group, []).append(one)
        moved = False
        for each in staying.values():
            if len(each) == 1:
                moved |= self.ask(each[0], each)
        return moved

    def _has_another_place(self, thread: ManagedThread, ours: Iterable[ManagedThread]) -> bool:
        hierarchy = self._adoption.hierarchy
        if hierarchy is None:
            return False
        if thread.weight is not None:
            return True  # it lost that one when we were about to write
        group = hierarchy.group_of(thread.id.pid, thread.id.tid)
        if group != thread.group:
            return True
        if any(one.group == group and one is not thread for one in ours):
            return False
        return has_to_itself(hierarchy, group, thread.id, thread.terms)
