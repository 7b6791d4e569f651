"""What putting back needs of a kernel, and the real one. Tests use a small state machine instead."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import NamedTuple, Protocol

from ..knobs import knob
from ..knobs.groups import CGROUP
from ..knobs.knob import KnobRef, NativeValue
from ..linux import cgroupfs, procfs
from ..linux.errors import ThreadGone
from ..model import VcpuId
from .heirs import lineage, parent


class Progress(NamedTuple):
    """`at_rest`: it sleeps in a way that a signal ends, is stopped, or on its way out; `ran_ns`: CPU time."""

    at_rest: bool
    ran_ns: int


class Kernel(Protocol):
    """Knobs and groups."""

    def read(self, ref: KnobRef) -> NativeValue:
        """The knob's present value. Raises ThreadGone, NotFair, or OSError."""

    def write(self, ref: KnobRef, value: NativeValue) -> None:
        """Put the knob back to this value. Raises ThreadGone, NotFair, or OSError."""

    def in_force(self, ref: KnobRef, value: NativeValue) -> NativeValue:
        """What the knob reads as while `value` is what was last asked for: a mask may be cut. Raises
        ThreadGone, or OSError."""

    def family(self, pids: frozenset[int]) -> Iterator[tuple[VcpuId, tuple[int, ...]]]:
        """Every thread of these processes and of their descendants, each with those of `pids` that it is of,
        the nearest first: one of them may be the child of another."""

    def progress(self, vcpu: VcpuId) -> Progress:
        """What a thread does now. Raises ThreadGone, or OSError."""

    def tables_kib(self, pid: int) -> int:
        """How large the page tables of a process are. Raises ThreadGone, or OSError."""

    def stolen_ns(self) -> int:
        """How long the hypervisor has kept this machine's CPUs from running, all together."""

    def clock_ns(self) -> int:
        """A clock that never goes back."""

    def pause(self, seconds: float) -> None:
        """Let others run."""

    def members(self, directory: str) -> tuple[VcpuId, ...]:
        """The threads in a group; none if there is no such group."""

    def move(self, member: VcpuId, directory: str) -> None:
        """Put a thread into a group. Raises ThreadGone, or OSError."""

    def related(self, member: VcpuId, pids: frozenset[int]) -> bool:
        """Is the thread of one of these processes or of a descendant?"""

    def remove_group(self, directory: str) -> bool:
        """Remove an empty group: True if it is gone now, False if it is not empty. Raises OSError."""


_GENERATIONS = 16
"""How deep a family of processes is followed."""


_AT_REST = frozenset("STtZX")
"""States of proc(5)."""


class _Parent(NamedTuple):
    pid: int
    parent: int


class LinuxKernel:
    """The kernel that this process runs on."""

    def read(self, ref: KnobRef) -> NativeValue:
        """See Kernel."""
        return knob.read(ref)

    def write(self, ref: KnobRef, value: NativeValue) -> None:
        """See Kernel."""
        knob.put_back(ref, value)

    def in_force(self, ref: KnobRef, value: NativeValue) -> NativeValue:
        """See Kernel."""
        return knob.in_force(ref, value)

    def family(self, pids: frozenset[int]) -> Iterator[tuple[VcpuId, tuple[int, ...]]]:
        """See Kernel."""
        parents = dict(_processes())
        for pid in parents:
            line = tuple(each for each in _line(pid, parents) if each in pids)
            if line:
                for member in _threads(pid):
                    yield member, line

    def progress(self, vcpu: VcpuId) -> Progress:
        """See Kernel."""
        stat = procfs.read_stat(vcpu.pid, vcpu.tid)
        if stat.start_ticks != vcpu.start_ticks:
            raise ThreadGone(f"thread {vcpu.tid} ended")
        line = procfs.read_bytes(f"{procfs.PROC}/{vcpu.pid}/task/{vcpu.tid}/schedstat")
        return Progress(stat.has_ended or stat.state in _AT_REST, procfs.parse_schedstat(line)[0])

    def tables_kib(self, pid: int) -> int:
        """See Kernel."""
        return procfs.tables_kib(pid)

    def stolen_ns(self) -> int:
        """See Kernel."""
        return procfs.stolen_ns()

    def clock_ns(self) -> int:
        """See Kernel."""
        return time.monotonic_ns()

    def pause(self, seconds: float) -> None:
        """See Kernel."""
        time.sleep(seconds)

    def members(self, directory: str) -> tuple[VcpuId, ...]:
        """See Kernel."""
        found = []
        hierarchy = cgroupfs.find_hierarchy()
        for tid in hierarchy.members(group_at(hierarchy, directory)):
            try:
                pid = procfs.process_of(tid)
                found.append(VcpuId(pid, tid, procfs.read_stat(pid, tid).start_ticks))
            except (ThreadGone, OSError):
                continue  # who stays in the group keeps it from being removed: that is said
        return tuple(found)

    def move(self, member: VcpuId, directory: str) -> None:
        """See Kernel."""
        hierarchy = cgroupfs.find_hierarchy()
        ref = KnobRef(member, CGROUP, hierarchy.mount)
        knob.write(ref, group_at(hierarchy, directory))

    def related(self, member: VcpuId, pids: frozenset[int]) -> bool:
        """See Kernel."""
        return any(pid in pids for pid in lineage(member.pid))

    def remove_group(self, directory: str) -> bool:
        """See Kernel."""
        return cgroupfs.remove_group(directory)


def group_at(hierarchy: cgroupfs.Hierarchy, directory: str) -> str:
    """The group that has this directory, as /proc names it."""
    inside = directory.removeprefix(hierarchy.mount)
    if hierarchy.root == "/":
        return inside or "/"
    return hierarchy.root + inside


def _processes() -> Iterator[_Parent]:
    for pid in procfs.process_ids():
        try:
            yield _Parent(pid, parent(pid))
        except (ThreadGone, OSError):
            continue


def _line(pid: int, parents: Mapping[int, int]) -> Iterator[int]:
    """The process, its parent, and so on."""
    for _ in range(_GENERATIONS):
        if pid not in parents:
            return
        yield pid
        pid = parents[pid]


def _threads(pid: int) -> Iterator[VcpuId]:
    for tid in procfs.thread_ids(pid):
        try:
            yield VcpuId(pid, tid, procfs.read_stat(pid, tid).start_ticks)
        except (ThreadGone, OSError):
            continue
