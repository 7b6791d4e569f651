"""Groups of our own, for threads that share theirs: made on the first weight, removed at the end. Those that
an earlier daemon has left are removed, too, whether or not any are to be made.

They are flat, `<the thread's group>/dasec-<tid>`, one thread in each, each with the neutral
weight: so a thread competes with its old neighbours as before. One group around all of them
would squeeze them into a single share (docs/decisions/0005-own-groups.md).
"""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Iterator
from typing import NamedTuple

from ...knobs import knob
from ...knobs.groups import CGROUP, CONTROLLERS, knob_of_group
from ...knobs.knob import KnobRef, Write
from ...knobs.weights import group_weight
from ...linux import cgroupfs, procfs
from ...linux.cgroupfs import Hierarchy
from ...linux.errors import ThreadGone
from ...model import VcpuId
from ...safety.groups import Kinship, base_of
from ...safety.kernel import Kernel, group_at
from .ahead import WriteAhead
from .notices import Notices
from .thread import WeightPlace


class _Left(NamedTuple):
    """A group that could not be removed, and the processes for whose threads it may have been made."""

    place: WeightPlace
    pids: frozenset[int]


class OwnGroups:
    """Makes and removes them, and keeps account of controllers that had to be handed on (v2)."""

    def __init__(
        self,
        hierarchy: Hierarchy,
        journal: WriteAhead,
        kernel: Kernel,
        notices: Notices,
        proc: str = procfs.PROC,
    ) -> None:
        self._hierarchy = hierarchy
        self._journal = journal
        self._kernel = kernel
        self._notices = notices
        self._proc = proc
        self._handed: dict[str, KnobRef] = {}
        self._origins: dict[str, str] = {}
        self._strangers: dict[str, frozenset[int]] = {}
        self._lingering = {one.place.group: one for one in self._of_an_earlier_daemon()}

    def make(self, place: WeightPlace) -> None:
        """Make the group that `place` names. Raises OSError, and then leaves nothing behind."""
        assert place.origin is not None, "only groups of our own are made"
        if place.group in self._lingering:
            raise OSError(errno.EEXIST, f"{place.group} is not removed yet: somebody is in it")
        directory = self._hierarchy.directory(place.group)
        self._journal.group_made(directory)
        try:
            self._make(place.group)
            if self._hierarchy.version == 2:
                self._hand_on(place.origin)
        except OSError:
            cgroupfs.remove_group(directory)
            self._journal.group_gone(directory)
            raise
        self._origins[place.group] = place.origin
        place.made = True

    def move_ref(self, vcpu: VcpuId) -> KnobRef:
        """The knob that says which group a thread is in."""
        return KnobRef(vcpu, CGROUP, self._hierarchy.mount)

    def evict(self, place: WeightPlace, owner: VcpuId) -> None:
        """Send threads that the owner started, and that so were born into its group, back to its old one."""
        self._send_back(place, frozenset({owner.pid}), frozenset({owner.tid}))

    def remove(self, place: WeightPlace, pids: frozenset[int]) -> None:
        """Remove the group of a thread of these processes that ended. It may hold it for a moment: then
        `sweep` does it."""
        self._send_back(place, pids, frozenset())
        if cgroupfs.remove_group(self.directory(place)):
            self.forget(place)
        else:
            self.linger(place, pids)

    def linger(self, place: WeightPlace, pids: frozenset[int]) -> None:
        """Somebody is still in there, a thread of these processes that we have let go or who was put there:
        `sweep` goes on."""
        self._lingering[place.group] = _Left(place, pids)

    def lingering(self) -> tuple[str, ...]:
        """The directories of those that could not be removed yet."""
        return tuple(self.directory(one.place) for one in self._lingering.values())

    def sweep(self) -> None:
        """Try again to remove what could not be removed before."""
        for left in tuple(self._lingering.values()):
            with contextlib.suppress(OSError):
                self.remove(*left)

    def forget(self, place: WeightPlace) -> None:
        """The group is gone; where it was the last below its parent, take the controller back, too."""
        self._journal.group_gone(self.directory(place))
        self._lingering.pop(place.group, None)
        self._strangers.pop(place.group, None)
        place.made = False
        origin = self._origins.pop(place.group, None)
        if origin is None or origin in self._origins.values():
            return
        ref = self._handed.pop(origin, None)
        if ref is not None:
            self._take_back(ref)

    def directory(self, place: WeightPlace) -> str:
        """Where the group is in the file system."""
        return self._hierarchy.directory(place.group)

    def _of_an_earlier_daemon(self) -> Iterator[_Left]:
        """What the journal holds when we begin, as far as it is of this hierarchy."""
        directories = self._journal.groups()
        pids = frozenset(one.ref.sake.pid for one in self._journal.outstanding() if one.ref.sake is not None)
        for directory in directories:
            group = group_at(self._hierarchy, directory)
            origin = group_at(self._hierarchy, base_of(directory, frozenset(directories)))
            file = self._hierarchy.weight_file(group)
            if self._hierarchy.directory(group) == directory:
                yield _Left(WeightPlace(group_weight(self._hierarchy), group, file, origin), pids)

    def _send_back(self, place: WeightPlace, pids: frozenset[int], staying: frozenset[int]) -> None:
        """By the test that a restore makes: whom somebody else put there stays, and is said once."""
        present = frozenset(self._hierarchy.members(place.group)) - staying
        strangers = present & self._strangers.get(place.group, frozenset())
        if place.origin is not None and present - strangers:
            strangers |= frozenset(self._not_born_in(place, pids, present - strangers, place.origin))
        self._strangers[place.group] = strangers

    def _not_born_in(
        self, place: WeightPlace, pids: frozenset[int], newly_met: frozenset[int], origin: str
    ) -> Iterator[int]:
        directory = self.directory(place)
        kinship = Kinship(pids, self._journal.bequests(), self._kernel)
        for tid in sorted(newly_met):
            with contextlib.suppress(ThreadGone, OSError):  # it ended, or cannot go yet
                process = procfs.process_of(tid, self._proc)
                member = VcpuId(process, tid, procfs.read_stat(process, tid, self._proc).start_ticks)
                if kinship.born_in(directory, member):
                    knob.write(self.move_ref(member), origin, self._proc)
                    continue
                line = f"{directory}: somebody else put thread {tid} there: it is left there"
                self._notices.say("threads of others in groups of ours", line)
                yield tid

    def _make(self, group: str) -> None:
        try:
            cgroupfs.make_group(self._hierarchy, group)
        except FileExistsError as error:
            if self._hierarchy.members(group) or self._hierarchy.children(group):
                raise OSError(errno.EEXIST, f"{group} exists and somebody is in it") from error

    def _hand_on(self, origin: str) -> None:
        path = CONTROLLERS.file_of(self._hierarchy, origin)
        if origin in self._handed or cgroupfs.hands_on_cpu(path):
            return
        ref = knob_of_group(CONTROLLERS, path)
        self._journal.begin((Write(ref, "", "cpu"),))
        try:
            knob.write(ref, "cpu", self._proc)
        except (ThreadGone, OSError) as error:
            self._journal.settle((ref,))
            raise OSError(errno.EBUSY, f"{path}: cpu cannot be handed on: {error}") from error
        self._handed[origin] = ref

    def _take_back(self, ref: KnobRef) -> None:
        try:
            knob.write(ref, "", self._proc)
        except ThreadGone:
            pass
        except OSError:
            return
        self._journal.settle((ref,))
