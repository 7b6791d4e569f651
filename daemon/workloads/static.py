"""Workloads named in the configuration: by process ids, by cgroup, or by the name of a program.

A selector that matches nothing is normal: what it names may come later. Names are matched
for user processes only, against a process's own name (its main thread's comm), as a whole.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..hosts.host import RosterEntry
from ..linux import cgroupfs, procfs
from ..linux.errors import HierarchyMissing, ThreadGone
from .discovered import SCAN_NS, Discovered, Notices

NAMES_REFRESHED_IN = 8
"""Scans in which every known process's name is read again (it may have called execve since); new
processes are read at once. Reading the names of 300 processes each time would cost 4 ms."""

Numbers = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Selector:
    """One configured workload: exactly one of pids, cgroup, comm says who belongs to it."""

    name: str
    share: int | None = None
    pids: tuple[int, ...] = ()
    cgroup: str | None = None
    comm: str | None = None

    def __post_init__(self) -> None:
        if sum((bool(self.pids), self.cgroup is not None, self.comm is not None)) != 1:
            raise ValueError(f"workload {self.name}: name exactly one of pids, cgroup, comm")


class StaticWorkloads:
    """Follows the selectors. While nothing changes it returns the same roster object."""

    def __init__(self, selectors: Sequence[Selector], proc: str = procfs.PROC) -> None:
        self._selectors = tuple(selectors)
        self._proc = proc
        self._processes: dict[int, _Process] = {}
        self._pids_of: dict[str, tuple[int, ...]] = {one.name: one.pids for one in selectors}
        self._in_groups: dict[str, tuple[Numbers, ...]] = {}
        self._finished: set[int] = set()
        self._names: dict[int, str | None] = {}
        self._scans = 0
        self._scanned_ns: int | None = None
        self._notices = Notices()
        self._roster: tuple[RosterEntry, ...] = ()

    def discover(self, clock_ns: int) -> Discovered:
        """Who belongs to which workload now."""
        changed = False
        if self._scanned_ns is None or clock_ns - self._scanned_ns >= SCAN_NS:
            self._scanned_ns = clock_ns
            self._scan()
            changed = True
        for process in tuple(self._processes.values()):
            changed |= process.changed()
        if not changed:
            return Discovered(self._roster, ())
        notices: list[str] = []
        entries = tuple(self._entries(notices))
        if entries != self._roster:
            self._roster = entries
        return Discovered(self._roster, self._notices.fresh(notices))

    def close(self) -> None:
        """Let all descriptors go."""
        for process in self._processes.values():
            process.close()
        self._processes.clear()

    def _scan(self) -> None:
        """Who is there, in /proc and in the named cgroups; and thread lists, whatever their counts say."""
        named = [one for one in self._selectors if one.comm is not None]
        if named:
            running = tuple(self._user_processes())
            for one in named:
                self._pids_of[one.name] = tuple(pid for pid, comm in running if comm == one.comm)
        for one in self._selectors:
            if one.cgroup is not None:
                self._in_groups[one.name] = self._threads_below(one.cgroup)
        self._follow({pid for pids in self._pids_of.values() for pid in pids})

    def _follow(self, wanted: set[int]) -> None:
        """Keep the thread lists of these processes. A process that was named by its id and has
        ended does not come back: whoever has that id later is somebody else."""
        for pid in self._processes.keys() - wanted:
            self._processes.pop(pid).close()
        by_id = {pid for one in self._selectors for pid in one.pids}
        for pid in sorted(wanted - self._finished):
            process = self._processes.get(pid)
            if process is None:
                process = _Process(pid, self._proc)
                if not process.gone:
                    self._processes[pid] = process
            elif not process.gone:
                process.read_threads()
            elif pid in by_id:
                self._finished.add(pid)
            else:
                self._processes[pid] = _Process(pid, self._proc)

    def _user_processes(self) -> Iterator[tuple[int, str]]:
        """Name and id of every user process but ourselves."""
        self._scans += 1
        names: dict[int, str | None] = {}
        for pid in procfs.process_ids(self._proc):
            if pid in self._names and (pid + self._scans) % NAMES_REFRESHED_IN:
                names[pid] = self._names[pid]
            else:
                names[pid] = self._user_name(pid)
        self._names = names
        for pid, name in names.items():
            if name is not None and pid != os.getpid():
                yield pid, name

    def _user_name(self, pid: int) -> str | None:
        try:
            stat = procfs.read_stat(pid, pid, self._proc)
        except (ThreadGone, PermissionError):
            return None
        return None if stat.is_kernel_thread else stat.comm

    def _threads_below(self, group: str) -> tuple[Numbers, ...]:
        """All threads of a cgroup and of the groups below it."""
        try:
            hierarchy = cgroupfs.find_hierarchy(self._proc)
        except HierarchyMissing:
            return ()
        found: list[Numbers] = []
        for one in hierarchy.below("/" + group.strip("/")):
            for tid in hierarchy.members(one):
                try:
                    found.append((procfs.process_of(tid, self._proc), tid))
                except ThreadGone:
                    continue
        return tuple(sorted(found))

    def _entries(self, notices: list[str]) -> Iterator[RosterEntry]:
        taken: dict[Numbers, str] = {}
        for one in self._selectors:
            mine: list[Numbers] = []
            for numbers in self._threads_of(one):
                if numbers in taken:
                    first, (pid, tid) = taken[numbers], numbers
                    notices.append(
                        f"thread {tid} of process {pid} matches {first} and {one.name}: "
                        f"it belongs to {first}, which is named first"
                    )
                else:
                    taken[numbers] = one.name
                    mine.append(numbers)
            if not mine:
                notices.append(f"workload {one.name} matches no thread at present")
            yield RosterEntry(one.name, one.share, tuple(mine))

    def _threads_of(self, one: Selector) -> tuple[Numbers, ...]:
        if one.cgroup is not None:
            return self._in_groups.get(one.name, ())
        return tuple(
            (pid, tid)
            for pid in self._pids_of[one.name]
            if pid in self._processes
            for tid in self._processes[pid].threads
        )


class _Process:
    """A process's threads, re-read when their number changes: the link count of its task directory."""

    __slots__ = ("_descriptor", "_links", "_pid", "_proc", "gone", "threads")

    def __init__(self, pid: int, proc: str) -> None:
        self._pid = pid
        self._proc = proc
        self._links = -1
        self._descriptor = -1
        self.threads: tuple[int, ...] = ()
        self.gone = False
        try:
            self._descriptor = os.open(f"{proc}/{pid}/task", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError:
            self.gone = True
        self.changed()

    def changed(self) -> bool:
        """Look again; True if the threads differ now."""
        if self.gone:
            return False
        try:
            links = os.fstat(self._descriptor).st_nlink
        except OSError:
            links = -1
        if links == self._links:
            return False
        self._links = links
        return self.read_threads()

    def read_threads(self) -> bool:
        """Read the thread list anew; True if it differs."""
        before = self.threads
        self.threads = () if self.gone else procfs.thread_ids(self._pid, self._proc)
        if not self.threads:
            self.close()
        return self.threads != before

    def close(self) -> None:
        """Let the descriptor go."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
        self._descriptor = -1
        self.gone = True
