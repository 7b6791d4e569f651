"""CPU time, looked at from outside at two instants: of the machine, and of everything in a run."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from .driver import OwnCpu
from .load_driver import UNAWAITED
from .process import name_of, thread_ids

LEAST_CPU_S = 1e-6
"""On an overloaded host a workload may get no time at all in a second; a ratio needs a number."""

IDLE_FIELDS, STEAL_FIELD, ACCOUNTED_FIELDS = (3, 4), 7, 8
"""Positions in the `cpu` line of /proc/stat (proc_stat(5)): idle and iowait, steal; guest time is
already in user time, so the fields behind steal do not count."""


@dataclass(frozen=True, slots=True)
class CpuTicks:
    """The machine's CPU time since boot, in clock ticks."""

    total: int
    idle: int
    stolen: int


@dataclass(frozen=True, slots=True)
class CpuUse:
    """What became of the machine's CPU time between two looks, as parts of it."""

    busy: float
    """Not idle: used by us or by others, or stolen."""
    stolen: float
    """Taken by the hypervisor."""

    @classmethod
    def between(cls, begin: CpuTicks, end: CpuTicks) -> CpuUse:
        """Of looks at the same machine."""
        total = max(1, end.total - begin.total)
        return cls(1 - (end.idle - begin.idle) / total, (end.stolen - begin.stolen) / total)

    def other_cores(self, cores: int, ours: float) -> float:
        """How many of these cores were used by others, where `ours` were by us."""
        return max(0.0, (self.busy - self.stolen) * cores - ours)


@dataclass(frozen=True, slots=True)
class CpuUsed:
    """CPU time of a workload's living threads (process and thread id) at that time, which of them no request
    waits for, and for how long each was ready and waited for a CPU."""

    at_ns: int
    spent_s: Mapping[tuple[int, int], float]
    background: frozenset[tuple[int, int]]
    waited_s: Mapping[tuple[int, int], float] = field(default_factory=dict)

    @classmethod
    def now(cls, pids: Iterable[int]) -> CpuUsed:
        """Of these processes."""
        at_ns, spent_s, background, waited_s = time.monotonic_ns(), {}, set(), {}
        for pid, tid in thread_ids(pids):
            with contextlib.suppress(OSError):  # it has ended meanwhile
                name = name_of(pid, tid)  # before the counters: who has those has a name
                spent_s[pid, tid], waited_s[pid, tid] = _ran_and_waited_s(pid, tid)
                if name.startswith(UNAWAITED):
                    background.add((pid, tid))
        return cls(at_ns, spent_s, frozenset(background), waited_s)

    def threads(self, pids: Iterable[int]) -> frozenset[tuple[int, int]]:
        """Those of these processes."""
        return frozenset(thread for thread in self.spent_s if thread[0] in pids)


@dataclass(frozen=True, slots=True)
class CoresUsed:
    """By a workload between two looks; of that by threads that no request waits for.
    `waiting`: how many of its threads were ready and waited, on average; None if some ended meanwhile and
    nobody tells."""

    cores: float
    background: float
    waiting: float | None


def cores_between(begin: CpuUsed, end: CpuUsed, own: Sequence[OwnCpu]) -> CoresUsed:
    """As seen from outside. The load tool's own counts begin with its first measured request and end after
    the last: in a backlog that is another time. They count where threads of those processes have ended before
    they were looked at: an ended thread has no counters."""
    seconds = (end.at_ns - begin.at_ns) / 1e9
    told = [each for each in own if begin.threads(each.pids) - end.threads(each.pids)]
    telling = frozenset[int]().union(*(each.pids for each in told))
    used_s = {
        thread: spent_s - begin.spent_s.get(thread, 0.0)
        for thread, spent_s in end.spent_s.items()
        if thread[0] not in telling
    }
    total_s = sum(used_s.values())
    background_s = sum(spent_s for thread, spent_s in used_s.items() if thread in end.background)
    waited_s = sum(
        waited_s - begin.waited_s.get(thread, 0.0)
        for thread, waited_s in end.waited_s.items()
        if thread[0] not in telling
    )
    ended = begin.spent_s.keys() - end.spent_s.keys()
    return CoresUsed(
        max(LEAST_CPU_S, total_s) / seconds + sum(each.cores for each in told),
        background_s / seconds + sum(each.background_cores for each in told),
        None
        if any(pid not in telling for pid, _ in ended)
        else waited_s / seconds + sum(each.waiting for each in told),
    )


@dataclass(frozen=True, slots=True)
class Mark:
    """All CPU counters at one instant."""

    ticks: CpuTicks
    pids: tuple[tuple[int, ...], ...]
    """Of each workload; two may be about the same processes."""
    tenants: tuple[CpuUsed, ...]
    clients_s: float
    daemon_s: float
    blame_s: tuple[float | None, ...]
    at_ns: int

    @classmethod
    def now(
        cls,
        tenants: Iterable[tuple[int, ...]],
        clients: Iterable[int],
        daemon: Iterable[int],
        blame_s: tuple[float | None, ...],
    ) -> Mark:
        """Of these processes."""
        ticks, pids = cpu_ticks(), tuple(tenants)
        used = {each: CpuUsed.now(each) for each in dict.fromkeys(pids)}
        return cls(
            ticks,
            pids,
            tuple(used[each] for each in pids),
            cpu_time_s(clients),
            cpu_time_s(daemon),
            blame_s,
            time.monotonic_ns(),
        )


def cpu_ticks(proc: Path = Path("/proc")) -> CpuTicks:
    """The machine's CPU time since boot."""
    line = (proc / "stat").read_text(encoding="ascii").splitlines()[0]
    ticks = [int(word) for word in line.split()[1 : ACCOUNTED_FIELDS + 1]]
    return CpuTicks(sum(ticks), sum(ticks[field] for field in IDLE_FIELDS), ticks[STEAL_FIELD])


def cpu_time_s(pids: Iterable[int], proc: Path = Path("/proc")) -> float:
    """CPU time that the living threads of these processes have used; a vanished one counts nothing."""
    used_s = 0.0
    for pid, tid in thread_ids(pids, proc):
        with contextlib.suppress(OSError):
            used_s += thread_cpu_s(pid, tid, proc)
    return used_s


def thread_cpu_s(pid: int, tid: int, proc: Path = Path("/proc")) -> float:
    """CPU time of one thread. Raises OSError if it is gone."""
    return _ran_and_waited_s(pid, tid, proc)[0]


def _ran_and_waited_s(pid: int, tid: int, proc: Path = Path("/proc")) -> tuple[float, float]:
    ran_ns, waited_ns, _ = (proc / str(pid) / "task" / str(tid) / "schedstat").read_text().split()
    return int(ran_ns) / 1e9, int(waited_ns) / 1e9
