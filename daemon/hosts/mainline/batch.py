"""The hot path by BPF: one call brings everybody who was awake, or whose knobs somebody wrote.

The kernel itself says who runs and who waits, who has ended, and how often each was preempted;
procfs says none of that. A sleeper costs nothing here.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence

from ...bpf.libbpf import BpfUnavailable
from ...bpf.thread_counters import State, ThreadCounters, ThreadTotals
from ...linux import procfs
from ...model import Core, Counters, ThreadState, VcpuId
from ..threads.looks import LookedAt, in_turn
from ..threads.thread import ManagedThread, why_not
from .sample import LONGEST_TICK_NS

_FAIR = frozenset((0, 3))

# Looked up once: an enum member costs 0.1 us (docs/measurements.md).
_QUEUED, _ENDED = int(State.QUEUED), int(State.ENDED)
_NOT_BY_THIS = (None,) * 6
"""What this call does not count: late wake-ups, and who woke whom."""

_STATES = (ThreadState.IDLE, ThreadState.READY, ThreadState.RUNNING)


class Seating:
    """Who sits where in the kernel's table; lives as long as the host.

    Raises BpfUnavailable when made where threads cannot be found by the ids that we know.
    """

    def __init__(self) -> None:
        self._kernel = ThreadCounters()
        self.seats = self._kernel.seats
        self._seat_of: dict[VcpuId, int] = {}
        self._free: list[int] = []
        own = threading.get_native_id()
        found = self._kernel.seat(0, own, procfs.read_stat(os.getpid(), own).start_ticks)
        self._kernel.leave(0)
        if not found:
            self.close()
            raise BpfUnavailable("in a pid or time namespace of its own the kernel knows us by other numbers")

    def seat(self, threads: Sequence[ManagedThread]) -> tuple[dict[int, ManagedThread], list[ManagedThread]]:
        """These threads and nobody else: by seat; and those that are gone."""
        stay = {thread.id for thread in threads}
        for who in [who for who in self._seat_of if who not in stay]:
            seat = self._seat_of.pop(who)
            self._kernel.leave(seat)
            self._free.append(seat)
        gone = [thread for thread in threads if thread.id not in self._seat_of and not self._sit(thread.id)]
        by_id = {thread.id: thread for thread in threads}
        return {seat: by_id[who] for who, seat in self._seat_of.items()}, gone

    def read(self) -> list[ThreadTotals]:
        """Who was awake, has ended, or has other knobs than at the last call."""
        return self._kernel.read()

    def close(self) -> None:
        """Let the kernel's table go."""
        self._kernel.close()

    def _sit(self, who: VcpuId) -> bool:
        seat = self._free.pop() if self._free else len(self._seat_of)
        if self._kernel.seat(seat, who.tid, who.start_ticks):
            self._seat_of[who] = seat
            return True
        self._free.append(seat)
        return False


class BatchSampler:
    """Reads a fixed set of threads; make another when the set changes."""

    def __init__(
        self, threads: Sequence[ManagedThread], counters: dict[VcpuId, Counters], seating: Seating
    ) -> None:
        self._threads = tuple(threads)
        self._counters = counters
        self._seating = seating
        self._sitting, self._gone = seating.seat(threads)
        self._knobs: dict[int, int] = {}
        self._waiting: dict[int, tuple[int, int]] = {}
        self._turn = 0

    def take(self, clock_ns: int) -> LookedAt:
        """One call, and a new entry for whoever it names."""
        sample = LookedAt(self._gone, [], [], [])
        self._gone = []
        suspects: list[ManagedThread] = []
        closely: list[ManagedThread] = []
        waiting: dict[int, tuple[int, int]] = {}
        sitting, counters, known_knobs, make = self._sitting, self._counters, self._knobs, tuple.__new__
        for (
            seat,
            state,
            policy,
            core,
            on_cpu_ns,
            ready_ns,
            dispatches,
            _,
            preemptions,
            knobs,
        ) in self._seating.read():
            thread = sitting[seat]
            if state == _ENDED:
                sample.gone.append(thread)
                continue
            if policy not in _FAIR and not thread.may_be(policy):
                sample.turned.append((thread, why_not(policy, kernel_thread=False) or ""))
                continue
            if known_knobs.get(seat) != knobs:
                known_knobs[seat] = knobs
                suspects.append(thread)
                if not thread.written:
                    closely.append(thread)
                thread.written = False
            if state == _QUEUED:
                used_ns = on_cpu_ns + ready_ns
                waiting[seat] = since = self._since(seat, used_ns, clock_ns)
                ready_ns = self._with_wait(thread.vcpu.id, ready_ns, clock_ns - since[1])
            # Made as a plain tuple: the named tuple's own constructor costs three times as much.
            fields = (on_cpu_ns, ready_ns, dispatches, _STATES[state], Core(core), preemptions, *_NOT_BY_THIS)
            counters[thread.vcpu.id] = make(Counters, fields)
        self._waiting = waiting
        # Who else is in a thread's group is the one thing that the kernel does not tell by itself.
        closely += in_turn(self._threads, self._turn, 1)
        self._turn += 1
        return sample._replace(suspects=suspects, closely=closely)

    def _since(self, seat: int, used_ns: int, clock_ns: int) -> tuple[int, int]:
        """What the thread had used when it was first seen waiting as it does now, and when that was."""
        known = self._waiting.get(seat)
        return known if known is not None and known[0] == used_ns else (used_ns, clock_ns)

    def _with_wait(self, who: VcpuId, ready_ns: int, waited_ns: int) -> int:
        """The kernel adds a wait when it ends. One that lasts is added here, so that starvation shows;
        the total never goes back."""
        if waited_ns <= LONGEST_TICK_NS:
            return ready_ns
        return max(self._counters[who].ready_ns, ready_ns + waited_ns)
