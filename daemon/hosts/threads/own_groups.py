"""Groups of our own, for threads that share theirs: made on the first weight, removed at the end.

They are flat, `<the thread's group>/dasec-<tid>`, one thread in each, each with the neutral
weight: so a thread competes with its old neighbours as before. One group around all of them
would squeeze them into a single share (docs/decisions/0005-own-groups.md).
"""

from __future__ import annotations

import errno

from ...knobs import knob
from ...knobs.groups import CGROUP, CONTROLLERS, knob_of_group
from ...knobs.knob import KnobRef, Write
from ...linux import cgroupfs, procfs
from ...linux.cgroupfs import Hierarchy
from ...linux.errors import ThreadGone
from ...model import VcpuId
from .ahead import WriteAhead
from .thread import WeightPlace


class OwnGroups:
    """Makes and removes them, and keeps account of controllers that had to be handed on (v2)."""

    def __init__(self, hierarchy: Hierarchy, journal: WriteAhead, proc: str = procfs.PROC) -> None:
        self._hierarchy = hierarchy
        self._journal = journal
        self._proc = proc
        self._handed: dict[str, KnobRef] = {}
        self._origins: dict[str, str] = {}
        self._lingering: list[WeightPlace] = []

    def make(self, place: WeightPlace) -> None:
        """Make the group that `place` names. Raises OSError, and then leaves nothing behind."""
        assert place.origin is not None, "only groups of our own are made"
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

    def evict(self, place: WeightPlace, owner: int | None) -> None:
        """Send threads that the owner started, and that so were born into its group, back to its old one."""
        for tid in self._hierarchy.members(place.group):
            if tid != owner and place.origin is not None:
                try:
                    self._hierarchy.move(tid, place.origin)
                except OSError:
                    continue  # it ended, or cannot go yet

    def remove(self, place: WeightPlace) -> None:
        """Remove the group of a thread that ended. It may hold it for a moment: then `sweep` does it."""
        self.evict(place, None)
        if cgroupfs.remove_group(self.directory(place)):
            self.forget(place)
        else:
            self.linger(place)

    def linger(self, place: WeightPlace) -> None:
        """A thread that we have let go is still in there: `sweep` takes it out."""
        self._lingering.append(place)

    def sweep(self) -> None:
        """Try again to remove what could not be removed before."""
        lingering, self._lingering = self._lingering, []
        for place in lingering:
            try:
                self.remove(place)
            except OSError:
                self.linger(place)

    def forget(self, place: WeightPlace) -> None:
        """The group is gone; where it was the last below its parent, take the controller back, too."""
        self._journal.group_gone(self.directory(place))
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
