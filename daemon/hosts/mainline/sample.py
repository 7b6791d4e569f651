"""The hot path: counters and states of all threads, with as few reads as will do.

schedstat is read for every thread, and compared as bytes. stat costs three times as much
and is read only where it can matter (docs/decisions/0007-read-where-it-matters.md):

- for threads that ran or waited for a good part of the time since the last look, or were
  awake then. One that did so for less is asleep now with a probability above 98 %, and is
  taken to be; if its schedstat has not moved by the next look, stat is read then, for it may
  have woken since and be waiting still (a wait is counted when it ends);
- for a few others in turn.

A sleeper costs one read and no object.
"""

from __future__ import annotations

import ctypes
import os
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import compress, count, repeat
from operator import ne

from ...linux import procfs
from ...model import Core, Counters, ThreadState, VcpuId
from ..threads.looks import SLEEPERS_READ_BACK, LookedAt, in_turn
from ..threads.thread import ManagedThread, why_not

SLEEPERS_READ = 8
"""Sleepers whose state is read all the same, in turn: 256 of them in 2.6 s, for 5 % of the cost."""

LIGHT = 64
"""A thread that used less than this fraction of the time is taken to be asleep."""

LONGEST_TICK_NS = 10_000_000
"""At HZ=100. The kernel brings a running thread's counters up to date each tick."""

_SCHEDSTAT_BYTES, _STAT_BYTES = 64, 1024
_NAME_END = 48
"""A user thread's name has ended by this byte: at most 10 digits of pid and 15 bytes of name go before."""

_RUNNABLE, _DEAD = ord("R"), frozenset(b"ZXx")
_PROCESSOR_FIELD = 36
_FAIR = frozenset((b"0", b"3"))

# Looked up once: an enum member costs 0.1 us (docs/measurements.md).
_IDLE, _READY, _RUNNING = ThreadState.IDLE, ThreadState.READY, ThreadState.RUNNING

_UNCOUNTED = (None,) * 7
"""What procfs does not count, from preemptions on."""

_sched_getcpu = ctypes.PyDLL(None).sched_getcpu


class Sampler:
    """Reads a fixed set of threads; make another when the set changes.

    What the loop needs of each thread lies in lists of its own: after a period asleep
    every object is a cache miss.
    """

    def __init__(self, threads: Sequence[ManagedThread], counters: dict[VcpuId, Counters]) -> None:
        self.threads = tuple(threads)
        self._counters = counters
        self._ids = [thread.id for thread in threads]
        self._schedstats = [thread.kept.schedstat for thread in threads]
        self._stats = [thread.kept.stat for thread in threads]
        self._lines = [b"0 0 0\n"] * len(threads)
        self._used_ns = [0] * len(threads)
        self._ran_ns = [known.on_cpu_ns if (known := counters.get(one.id)) else 0 for one in threads]
        self._cores = [thread.first_core for thread in threads]
        self._awake: set[int] = set()
        self._light: set[int] = set()
        self._waiting_since_ns: dict[int, int] = {}
        self._clock_ns = 0
        self._turn = self._turn_of_knobs = 0
        self._fields_from_processor = _fields_from_processor()

    def take(self, clock_ns: int) -> LookedAt:
        """Read what has to be read, and bring the counters up to date."""
        lines = self._read_schedstats()
        changed = list(compress(count(), map(ne, lines, self._lines)))
        gone = [at for at in changed if not lines[at]]
        if gone:
            changed = [at for at in changed if lines[at]]
        numbers = list(map(int, b"".join([lines[at] for at in changed]).split()))
        light, went_back = self._find_light(changed, numbers, clock_ns - self._clock_ns)
        gone += went_back
        look = (self._awake | self._light).union(changed, self._sleepers_in_turn()) - light - set(gone)
        threads = self.threads
        busy = [threads[at] for at in changed]
        turn = self._turn_of_knobs
        self._turn_of_knobs = turn + 1
        suspects = (*busy, *in_turn(threads, turn, SLEEPERS_READ_BACK))
        sample = LookedAt([threads[at] for at in gone], [], suspects, in_turn(threads, turn, 1))
        awake = self._read_stats(look, sample)
        self._enter(changed, numbers)
        self._mark_asleep(self._awake.difference(awake, changed))
        self._tell_running_from_ready(awake, lines, clock_ns)
        self._lines, self._clock_ns = lines, clock_ns
        self._awake, self._light = awake, light
        return sample

    def _read_schedstats(self) -> list[bytes]:
        try:
            return list(map(os.pread, self._schedstats, repeat(_SCHEDSTAT_BYTES), repeat(0)))
        except ProcessLookupError:
            return [_or_empty(descriptor) for descriptor in self._schedstats]

    def _find_light(
        self, changed: Sequence[int], numbers: Sequence[int], elapsed_ns: int
    ) -> tuple[set[int], list[int]]:
        """Which of these hardly ran nor waited; and whose time on CPUs went back: such a number is that of
        another thread now, which has called execve (safety/takeover.py)."""
        enough_ns = elapsed_ns // LIGHT
        light = set()
        went_back = []
        used, ran = self._used_ns, self._ran_ns
        for at, on_cpu_ns, ready_ns in zip(changed, numbers[0::3], numbers[1::3], strict=True):
            used_ns = on_cpu_ns + ready_ns
            if used_ns - used[at] < enough_ns:
                light.add(at)
            if on_cpu_ns < ran[at]:
                went_back.append(at)
            used[at], ran[at] = used_ns, on_cpu_ns
        return light - self._awake, went_back

    def _sleepers_in_turn(self) -> range:
        start = self._turn
        self._turn = start + SLEEPERS_READ if start + SLEEPERS_READ < len(self.threads) else 0
        return range(start, min(start + SLEEPERS_READ, len(self.threads)))

    def _read_stats(self, look: Iterable[int], sample: LookedAt) -> set[int]:
        """The cores of these threads; and which of them are awake."""
        awake = set()
        for at in look:
            try:
                stat = os.pread(self._stats[at], _STAT_BYTES, 0)
            except ProcessLookupError:
                sample.gone.append(self.threads[at])
                continue
            letter = stat[stat.rindex(b")", 0, _NAME_END) + 2]
            tail = stat.rsplit(b" ", self._fields_from_processor)
            if letter in _DEAD:
                sample.gone.append(self.threads[at])
            elif tail[3] not in _FAIR and not self.threads[at].may_be(int(tail[3])):
                reason = why_not(int(tail[3]), kernel_thread=False) or ""
                sample.turned.append((self.threads[at], reason))
            else:
                self._cores[at] = Core(int(tail[1]))
                if letter == _RUNNABLE:
                    awake.add(at)
        return awake

    def _enter(self, changed: Sequence[int], numbers: Sequence[int]) -> None:
        """New totals; whoever is awake is entered again later.

        Made as plain tuples: the named tuple's own constructor costs three times as much.
        """
        ids, cores, counters, make = self._ids, self._cores, self._counters, tuple.__new__
        totals = zip(changed, numbers[0::3], numbers[1::3], numbers[2::3], strict=True)
        for at, on_cpu_ns, ready_ns, dispatches in totals:
            fields = (on_cpu_ns, ready_ns, dispatches, _IDLE, cores[at], *_UNCOUNTED)
            counters[ids[at]] = make(Counters, fields)

    def _mark_asleep(self, places: Iterable[int]) -> None:
        for at in places:
            self._counters[self._ids[at]] = self._counters[self._ids[at]]._replace(state=_IDLE)

    def _tell_running_from_ready(self, awake: set[int], lines: list[bytes], clock_ns: int) -> None:
        """Of several runnable threads on a core at most one runs, and none where we run ourselves.

        procfs says R for both. Which of several it is cannot be known: all count as ready.
        A wait that has lasted since an earlier look, with nothing counted since, is added
        here, so that starvation shows; the total never goes back.
        """
        crowd = Counter([self._cores[at] for at in awake])
        crowd[Core(_sched_getcpu())] += 1
        since: dict[int, int] = {}
        for at in awake:
            core = self._cores[at]
            known = self._counters[self._ids[at]]
            state = _READY if crowd[core] > 1 else _RUNNING
            ready_ns = known.ready_ns
            since[at] = clock_ns
            if lines[at] == self._lines[at]:
                since[at] = self._waiting_since_ns.get(at, clock_ns)
                waited_ns = clock_ns - since[at]
                if state is _READY and waited_ns > LONGEST_TICK_NS:
                    ready_ns = max(ready_ns, int(lines[at].split()[1]) + waited_ns)
            self._counters[self._ids[at]] = known._replace(state=state, core=core, ready_ns=ready_ns)
        self._waiting_since_ns = since


def _or_empty(descriptor: int) -> bytes:
    try:
        return os.pread(descriptor, _SCHEDSTAT_BYTES, 0)
    except ProcessLookupError:
        return b""


def _fields_from_processor() -> int:
    """How many fields a stat line has from `processor` on: splitting from the right is half the cost."""
    line = procfs.read_bytes("/proc/self/stat")
    return len(line[line.rindex(b")") + 2 :].split()) - _PROCESSOR_FIELD
