"""Knobs of groups, and the group that a thread is in."""

from __future__ import annotations

import errno
from abc import abstractmethod

from ..linux import cgroupfs
from ..linux.cgroupfs import Hierarchy
from ..linux.errors import HierarchyMissing, ThreadGone
from ..linux.procfs import PROC
from ..model import VcpuId
from .knob import GroupId, KnobRef, NativeKnob, NativeValue, no_value

CPU = "cpu"
"""The controller that is handed on."""


class GroupKnob(NativeKnob):
    """One in a file of a group's directory."""

    of_group = True

    def read(self, ref: KnobRef, proc: str) -> NativeValue:
        """See NativeKnob."""
        self.same_group(ref)
        return self.read_file(ref.file)

    def write(self, ref: KnobRef, value: NativeValue, proc: str, descriptor: int | None = None) -> None:
        """See NativeKnob."""
        self.same_group(ref)
        self.write_file(ref.file, value)

    @staticmethod
    def same_group(ref: KnobRef) -> None:
        """Raises ThreadGone where a group of that name is another one now."""
        inode = ref.group.inode
        if inode and cgroupfs.inode_of(ref.file) != inode:
            raise ThreadGone(f"the group of {ref.file} was removed; one of its name was made since")

    @abstractmethod
    def read_file(self, path: str) -> NativeValue:
        """What the file says."""

    @abstractmethod
    def write_file(self, path: str, value: NativeValue) -> None:
        """Write it there."""

    @abstractmethod
    def file_of(self, hierarchy: Hierarchy, group: str) -> str:
        """Where a group has it."""


class Controllers(GroupKnob):
    """ "cpu" where a v2 group's subtree_control hands the cpu controller on, else "". It is put back last,
    after the groups that needed it, and whether or not a thread that did still lives."""

    after_groups = True

    def read_file(self, path: str) -> NativeValue:
        """See GroupKnob."""
        return CPU if cgroupfs.hands_on_cpu(path) else ""

    def write_file(self, path: str, value: NativeValue) -> None:
        """See GroupKnob."""
        if value not in (CPU, ""):
            raise no_value(self, value)
        cgroupfs.hand_on_cpu(path, on=value == CPU)

    def file_of(self, hierarchy: Hierarchy, group: str) -> str:
        """See GroupKnob."""
        return f"{hierarchy.directory(group)}/cgroup.subtree_control"


class Membership(NativeKnob):
    """The group that a thread is in; `KnobRef.path` is the hierarchy's mount point. The names of our own
    groups are ours, whoever is found in them."""

    inherited = found_anywhere = in_task = lost_at_end = True

    def read(self, ref: KnobRef, proc: str) -> NativeValue:
        """See NativeKnob. A group whose path is longer than the kernel writes is none of ours."""
        try:
            return _hierarchy(ref, proc).group_of(ref.vcpu.pid, ref.vcpu.tid, proc)
        except OSError as error:
            if error.errno != errno.ENAMETOOLONG:
                raise
            return "a group that is nested too deep to be named"

    def write(self, ref: KnobRef, value: NativeValue, proc: str, descriptor: int | None = None) -> None:
        """See NativeKnob."""
        if not isinstance(value, str):
            raise no_value(self, value)
        _hierarchy(ref, proc).move(ref.vcpu.tid, value)


def _hierarchy(ref: KnobRef, proc: str = PROC) -> Hierarchy:
    try:
        return cgroupfs.hierarchy_at(ref.path, proc)
    except HierarchyMissing as error:
        raise OSError(errno.ENODEV, str(error)) from error


def knob_of_group(kind: NativeKnob, file: str, inhabitant: VcpuId | None = None) -> KnobRef:
    """The knob that is in this file of a group. Raises ThreadGone where there is no such group."""
    directory, _, name = file.rpartition("/")
    return KnobRef(GroupId(directory, cgroupfs.inode_of(file), inhabitant), kind, name)


CGROUP = Membership("cgroup")
CONTROLLERS = Controllers("controllers")
