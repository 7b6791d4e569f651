"""Workloads named in the configuration: by process ids, by cgroup, or by the name of a program.

A selector that matches nothing is normal: what it names may come later. Names are matched
for user processes only, against a process's own name (its main thread's comm), as a whole.
A number of /proc stands for whoever had it when it matched: kept descriptors, inodes and start
times say whether it is still his.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

from ..linux import cgroupfs, procfs
from ..linux.errors import HierarchyMissing, ThreadGone
from ..roster import RosterEntry
from .discovery import SCAN_NS, Discovered, OnceEach
from .lives import Lives

NAMES_REFRESHED_IN = 8
"""Scans in which every known process's name is read again (it may have called execve since); new
processes are read at once. Reading the names of 300 processes each time would cost 4 ms."""

TREE_PART = 200
"""A workload's tree of groups is read for this part of the time, half the default budget: 300 groups every
two seconds. Who makes thousands of them is looked through less often, and nobody else is."""

LONGEST_NS = 10 * SCAN_NS
"""Who is born in such a tree is found within this time all the same."""

_MORE = (
    f"below its group are more than {cgroupfs.MOST_GROUPS} groups, groups nested more than {cgroupfs.DEEPEST}"
    " deep, or some that cannot be read: what is in those is left alone"
)

Numbers = tuple[int, int]


class _Process(NamedTuple):
    """A process that was met; no name: it is a kernel thread, or not ours to read."""

    name: str | None
    start_ticks: int


class _Thread(NamedTuple):
    pid: int
    start_ticks: int


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

    def __init__(
        self,
        selectors: Sequence[Selector],
        proc: str = procfs.PROC,
        cpu_clock: Callable[[], int] = time.thread_time_ns,
    ) -> None:
        self._selectors = tuple(selectors)
        self._proc, self._cpu_clock = proc, cpu_clock
        self._processes: dict[int, _TaskList] = {}
        self._pids_of: dict[str, tuple[int, ...]] = {one.name: one.pids for one in selectors}
        self._in_groups: dict[str, dict[Numbers, int]] = {}
        self._odd: dict[str, str] = {}
        self._finished: set[int] = set()
        self._met = Lives(self._meet, proc)
        self._met_in_groups = {one.name: Lives(self._meet_thread, proc) for one in selectors}
        self._due_ns = dict.fromkeys(self._met_in_groups, 0)
        self._scans = 0
        self._scanned_ns: int | None = None
        self._notices = OnceEach()
        self._roster: tuple[RosterEntry, ...] = ()

    def take_over(self, former: StaticWorkloads) -> None:
        """The configuration was read again. An id that both name stays that of the process that had it."""
        both = self._by_id() & former._by_id()
        self._finished = former._finished & both
        for pid in both & former._processes.keys():
            self._processes[pid] = former._processes.pop(pid)

    def discover(self, clock_ns: int) -> Discovered:
        """Who belongs to which workload now."""
        changed = False
        if self._scanned_ns is None or clock_ns - self._scanned_ns >= SCAN_NS:
            self._scanned_ns = clock_ns
            self._scan(clock_ns)
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

    def _scan(self, clock_ns: int) -> None:
        """Who is there, in /proc and in the named cgroups; and thread lists, whatever their counts say."""
        named = [one for one in self._selectors if one.comm is not None]
        running = dict(self._user_processes()) if named else {}
        for one in named:
            self._pids_of[one.name] = tuple(pid for pid, met in running.items() if met.name == one.comm)
        for one in self._selectors:
            if one.cgroup is not None and clock_ns >= self._due_ns[one.name]:
                began_ns = self._cpu_clock()
                self._odd.pop(one.name, None)
                self._in_groups[one.name] = dict(sorted(self._threads_below(one.name, one.cgroup)))
                self._met_in_groups[one.name].end_of_scan()
                took_ns = self._cpu_clock() - began_ns
                self._due_ns[one.name] = clock_ns + min(TREE_PART * took_ns, LONGEST_NS)
        self._follow({pid for pids in self._pids_of.values() for pid in pids}, running)

    def _follow(self, wanted: set[int], running: Mapping[int, _Process]) -> None:
        """Keep the thread lists of these processes. A process that was named by its id and has
        ended does not come back: whoever has that id later is somebody else."""
        for pid in self._processes.keys() - wanted:
            self._processes.pop(pid).close()
        by_id = self._by_id()
        for pid in sorted(wanted - self._finished):
            process = self._processes.get(pid)
            if process is not None:
                process.read_threads()
                if process.gone and pid in by_id:
                    self._finished.add(pid)
            if process is None or (process.gone and pid not in by_id):
                process = _TaskList(pid, self._proc)
                if pid in running and running[pid].start_ticks != process.start_ticks:
                    process.close()
                self._processes[pid] = process
            if process.gone and pid not in self._finished:
                del self._processes[pid]

    def _by_id(self) -> set[int]:
        return {pid for one in self._selectors for pid in one.pids}

    def _user_processes(self) -> Iterator[tuple[int, _Process]]:
        """Every user process but ourselves."""
        self._scans += 1
        for pid in procfs.process_ids(self._proc):
            try:
                met = self._met.of(pid, anew=not (pid + self._scans) % NAMES_REFRESHED_IN)
            except ThreadGone:
                continue
            if met.name is not None and pid != os.getpid():
                yield pid, met
        self._met.end_of_scan()

    def _meet(self, pid: int) -> _Process:
        try:
            stat = procfs.read_stat(pid, pid, self._proc)
        except OSError:
            return _Process(None, 0)  # nobody can say who it is: it is nobody's
        return _Process(None if stat.is_kernel_thread else stat.comm, stat.start_ticks)

    def _meet_thread(self, tid: int) -> _Thread:
        pid = procfs.process_of(tid, self._proc)
        return _Thread(pid, procfs.read_stat(pid, tid, self._proc).start_ticks)

    def _threads_below(self, name: str, group: str) -> Iterator[tuple[Numbers, int]]:
        """All threads of a cgroup and of the groups below it, with their start times. A group or a thread
        that cannot be read costs itself only, and is said."""
        try:
            hierarchy = cgroupfs.find_hierarchy(self._proc)
        except HierarchyMissing:
            return
        groups, complete = hierarchy.below("/" + group.strip("/"))
        if not complete:
            self._odd[name] = _MORE
        for one in groups:
            try:
                members = hierarchy.members(one)
            except OSError as error:
                self._odd[name] = f"a group cannot be read ({error.strerror}): what is in it is left alone"
                continue
            for tid in members:
                try:
                    pid, start_ticks = self._met_in_groups[name].of(tid)
                except ThreadGone:
                    continue
                except OSError as error:
                    self._odd[name] = f"thread {tid} cannot be read ({error.strerror}): it is left alone"
                    continue
                yield (pid, tid), start_ticks

    def _entries(self, notices: list[str]) -> Iterator[RosterEntry]:
        taken: dict[Numbers, str] = {}
        for one in self._selectors:
            mine: list[Numbers] = []
            for numbers in self._threads_of(one):
                if numbers in taken:
                    first = taken[numbers]
                    notices.append(
                        f"some threads match {first} and {one.name}: "
                        f"they belong to {first}, which is named first"
                    )
                else:
                    taken[numbers] = one.name
                    mine.append(numbers)
            if one.name in self._odd:
                notices.append(f"workload {one.name}: {self._odd[one.name]}")
            notices += self._no_processes(one)
            if not mine:
                notices.append(f"workload {one.name} matches no thread at present")
            found = self._in_groups.get(one.name)
            births = tuple(found[each] for each in mine) if found else ()
            yield RosterEntry(one.name, one.share, tuple(mine), births=births)

    def _no_processes(self, one: Selector) -> Iterator[str]:
        """Whoever names a thread means that one, and would get all of its process."""
        for number in one.pids:
            with suppress(ThreadGone, OSError):
                if (process := procfs.process_of(number, self._proc)) != number:
                    yield (
                        f"workload {one.name}: {number} in `pids` is a thread of process {process} and is"
                        " left alone: name the process, or a cgroup with that thread"
                    )

    def _threads_of(self, one: Selector) -> tuple[Numbers, ...]:
        if one.cgroup is not None:
            return tuple(self._in_groups.get(one.name, ()))
        return tuple(
            (pid, tid)
            for pid in self._pids_of[one.name]
            if pid in self._processes
            for tid in self._processes[pid].threads
        )


class _TaskList:
    """A process's threads, re-read when their number changes: the link count of its task directory. All is
    read through one descriptor of it, which belongs to the process and not to its number."""

    __slots__ = ("_descriptor", "_links", "gone", "start_ticks", "threads")

    def __init__(self, pid: int, proc: str) -> None:
        self._links = -1
        self._descriptor = -1
        self.threads: tuple[int, ...] = ()
        self.gone = False
        self.start_ticks = 0
        try:
            self._descriptor = os.open(f"{proc}/{pid}/task", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            self.start_ticks = procfs.start_ticks_below(self._descriptor, pid)
            if procfs.process_of(pid, proc) != pid:
                self.close()
        except (OSError, ThreadGone):
            self.close()
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
        try:
            self.threads = () if self.gone else procfs.thread_ids_of(self._descriptor)
        except OSError:
            return False  # as it was: the next scan reads it again
        if not self.threads:
            self.close()
        return self.threads != before

    def close(self) -> None:
        """Let the descriptor go."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
        self._descriptor = -1
        self.gone = True
