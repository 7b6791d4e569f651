"""Does this kernel starve who stands beside a group? Tried for two seconds at most, on processes of our own.

A group that has threads on several CPUs has a part of its weight on each, in proportion to its load there, so
the kernel re-weights it on a CPU whenever one of its threads wakes up or sleeps there (update_cfs_group()).
Kernels from 6.13 (commit 6d71a9c61604) until its revert in 6.18.45 put a group that is *running* then in a
wrong place: what it had too little of the CPU counts for more each time, so it goes on running, and who
stands beside it waits for seconds, without any write of ours (docs/decisions/0040-reweighting.md). The
version says who may be affected, not who is: distributions backport both. So we try:

    contested CPU:  group a (one that computes, nappers)  |  group b (one that computes)
    another CPU:    group a (one that computes)

and look how much CPU time one of them got there while the other, always runnable, got none. EEVDF and CFS
bound that by a slice or two and a tick. As it is counted in CPU time of the rival, other work on the host
cannot look like it: that only takes time from both.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import NamedTuple

from ...linux import cgroupfs, procfs
from ...linux.cgroupfs import Hierarchy
from ...linux.errors import ThreadGone
from ...safety.groups import probe_group
from .dummy import Runner, napper, spinner

GENTLE_S, LONGEST_S = 1.0, 2.0
"""So long on what others leave, with the least weight; then, where they leave nothing, as anybody."""

STARVED_NS = 100_000_000
"""Of a rival's CPU time. A slice is 24 ms at the most (CFS beside one other), a tick 10 ms at HZ=100."""

ENOUGH_NS = 300_000_000
"""CPU time of both after which nobody has starved."""

LIFE_S = LONGEST_S + 1.0
"""After which a child ends by itself. A kernel that starves groups starved the daemon that was trying it too,
for minutes, until somebody ended the children."""

LEAST_NS = 150_000_000
"""CPU time of both in which a kernel that starves would have shown it."""

NAPPERS = 2
LOOK_S = 0.004

_GENTLE = {1: 2, 2: 1}
_NEUTRAL = {1: 1024, 2: 100}


class Duel(NamedTuple):
    """What two groups got on the contested CPU: together, and the most of one while the other waited."""

    served_ns: int = 0
    starved_ns: int = 0

    @property
    def starves(self) -> bool:
        """Did one of them wait for longer than any right scheduler lets it?"""
        return self.starved_ns >= STARVED_NS

    @property
    def tells(self) -> bool:
        """Was there CPU time enough to tell?"""
        return self.starves or self.served_ns >= LEAST_NS


class Side(NamedTuple):
    """One of the two: what it has got, and what its rival had when that last grew."""

    got_ns: int
    rival_then_ns: int

    def after(self, got_ns: int, rival_ns: int) -> Side:
        """With a later look."""
        return self if got_ns == self.got_ns else Side(got_ns, rival_ns)


def try_duel(hierarchy: Hierarchy, parent: str, contested: int, other: int) -> Duel:
    """Two groups beside each other on one CPU, one of which has load on another. Raises OSError."""
    top = f"{parent.rstrip('/')}/{probe_group()}"
    groups = (top, f"{top}/a", f"{top}/b")
    try:
        with _made(hierarchy, groups), ExitStack() as stack:
            computing = [stack.enter_context(spinner(cpu, LIFE_S)) for cpu in (contested, contested, other)]
            napping = [stack.enter_context(napper(contested, LIFE_S)) for _ in range(NAPPERS)]
            runners = (*computing, *napping)
            stack.enter_context(_in_front())
            _weigh(hierarchy, top, _GENTLE)
            for runner in runners:
                _enter(hierarchy, groups[2 if runner is computing[1] else 1], runner.pid)
            for runner in runners:
                runner.begin()
            duel = _duel(hierarchy, top, [computing[0].pid, *(one.pid for one in napping)], computing[1].pid)
            _all_alive(runners)
            return duel
    except ThreadGone as error:
        raise OSError(f"a child ended early: {error}") from error


def _all_alive(runners: Sequence[Runner]) -> None:
    """Who has ended gets no CPU time either, and has not starved."""
    if any(procfs.read_stat(one.pid, one.pid).state == "Z" for one in runners):
        raise OSError("a child ended early: this host was too busy to tell")


def _duel(hierarchy: Hierarchy, top: str, ours: Sequence[int], rival: int) -> Duel:
    start = (sum(map(_on_cpu_ns, ours)), _on_cpu_ns(rival))
    a, b = Side(start[0], start[1]), Side(start[1], start[0])
    duel, begin = Duel(), time.monotonic()
    gentle = True
    while not duel.starves and duel.served_ns < ENOUGH_NS and time.monotonic() < begin + LONGEST_S:
        if gentle and time.monotonic() > begin + GENTLE_S:
            _weigh(hierarchy, top, _NEUTRAL)
            gentle = False
        time.sleep(LOOK_S)
        got = (sum(map(_on_cpu_ns, ours)), _on_cpu_ns(rival))
        a, b = a.after(*got), b.after(got[1], got[0])
        starved_ns = max(got[1] - a.rival_then_ns, got[0] - b.rival_then_ns)
        duel = Duel(sum(got) - sum(start), max(duel.starved_ns, starved_ns))
    return duel


@contextmanager
def _in_front() -> Iterator[None]:
    """Real-time where that is allowed, and asleep but for the looks: nobody who is tried can starve us."""
    policy, parameter = os.sched_getscheduler(0), os.sched_getparam(0)
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    except OSError:
        yield  # the children end by themselves
        return
    try:
        yield
    finally:
        os.sched_setscheduler(0, policy, parameter)


@contextmanager
def _made(hierarchy: Hierarchy, groups: Sequence[str]) -> Iterator[None]:
    """These groups, the first around the others; on v2 it hands the controller on."""
    made: list[str] = []
    try:
        for group in groups:
            os.mkdir(hierarchy.directory(group))
            made.append(hierarchy.directory(group))
        if hierarchy.version == 2:
            cgroupfs.write(f"{made[0]}/cgroup.subtree_control", "+cpu")
        yield
    finally:
        for directory in reversed(made):
            _remove(directory)


def _weigh(hierarchy: Hierarchy, group: str, weight: dict[int, int]) -> None:
    cgroupfs.write_weight(hierarchy.weight_file(group), weight[hierarchy.version])


def _enter(hierarchy: Hierarchy, group: str, pid: int) -> None:
    """The whole process: a v2 group that is not threaded takes no single threads."""
    cgroupfs.write(f"{hierarchy.directory(group)}/cgroup.procs", str(pid))


def _on_cpu_ns(pid: int) -> int:
    return procfs.parse_schedstat(procfs.read_bytes(f"{procfs.PROC}/{pid}/schedstat"))[0]


def _remove(directory: str) -> None:
    """A child that was killed holds its group for a moment."""
    for _ in range(100):
        if cgroupfs.remove_group(directory):
            return
        time.sleep(0.01)
