"""The hot path on a patched kernel: one read a process, and only the lines that changed are parsed.

The kernel says what procfs cannot: running, ready or idle, waits up to now, preemptions, late
wake-ups, who woke whom. The same lines show both of the patch's knobs, so that a foreign write
to any thread, asleep or not, is seen in the very period.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from itertools import compress, repeat
from operator import ne

from ...knobs.knob import NativeKnob
from ...knobs.patched import GRANULARITY, THREAD_WEIGHT
from ...linux import dasecfile, procfs, schedattr
from ...linux.dasecfile import Columns, DasecFile
from ...linux.errors import ThreadGone
from ...model import Core, Counters, ThreadState, VcpuId
from ..threads.looks import SLEEPERS_READ_BACK, LookedAt, in_turn
from ..threads.thread import ManagedThread, why_not
from .files import ProcessFiles

POLICIES_READ = 16
"""Threads whose scheduling policy is looked at, in turn; the file does not tell it. Before any write it
is looked at in any case. 256 threads in 1.3 s, for 10 us a period."""

_STATES = {dasecfile.RUNNING: ThreadState.RUNNING, dasecfile.QUEUED: ThreadState.READY}
_IDLE = ThreadState.IDLE
_STAT_BYTES = 1024
_NOT_BY_THIS = (None, None)
"""Time in chains and outward wake-ups: no version of the file counts them."""
_UNTOLD = repeat((None, None))
"""In the first version `external` counts wake-ups from outside the process with timers: not the model's."""
_Wakers = tuple[tuple[VcpuId, int], ...]


class FileSampler:
    """Reads a fixed set of threads; make another when the set changes."""

    def __init__(
        self, threads: Sequence[ManagedThread], counters: dict[VcpuId, Counters], files: ProcessFiles
    ) -> None:
        self._threads = tuple(threads)
        self._files = files
        self._turn = 0
        members: dict[int, dict[int, ManagedThread]] = {}
        for thread in threads:
            members.setdefault(thread.id.pid, {})[thread.id.tid] = thread
        self._processes = [_ProcessLines(pid, of_it, counters) for pid, of_it in members.items()]

    def take(self, clock_ns: int) -> LookedAt:
        """Read every process, and bring the counters up to date."""
        suspects = [*in_turn(self._threads, self._turn, SLEEPERS_READ_BACK)]
        closely = [*in_turn(self._threads, self._turn, 1)]
        found = LookedAt([], [], suspects, closely)
        for process in self._processes:
            written = process.pid in self._files.written
            try:
                of_process = process.take(self._files.of(process.pid), compare_all=written)
                found.gone.extend(of_process.gone)
                suspects += of_process.suspects
                closely += of_process.closely
            except ThreadGone:
                self._files.drop(process.pid)
                found.gone.extend(process.members.values())
            except OSError as error:
                reason = f"its dasec file cannot be read: {error.strerror}"
                found.turned.extend((thread, reason) for thread in process.members.values())
        self._files.written.clear()
        self._look_at_policies(found)
        self._turn += 1
        return found

    def _look_at_policies(self, found: LookedAt) -> None:
        lost = {thread.id for thread in found.gone} | {thread.id for thread, _ in found.turned}
        for thread in in_turn(self._threads, self._turn, POLICIES_READ):
            if thread.id in lost:
                continue
            try:
                reason = why_not(schedattr.policy_of(thread.id.tid), kernel_thread=False)
            except OSError:
                found.gone.append(thread)
                continue
            if reason is not None:
                found.turned.append((thread, reason))


class _ProcessLines:
    """The managed threads of one process, and its lines of the last reading."""

    def __init__(self, pid: int, members: dict[int, ManagedThread], counters: dict[VcpuId, Counters]) -> None:
        self.pid = pid
        self.members = members
        self._counters = counters
        self._ids = {tid: thread.id for tid, thread in members.items()}
        self._lines: list[bytes] = []
        self._tids: frozenset[int] = frozenset()
        self._wakers: dict[int, tuple[bytes, _Wakers]] = {}
        self._knobs: dict[int, tuple[bytes, bytes]] = {}

    def take(self, file: DasecFile, *, compare_all: bool) -> LookedAt:
        """Read the file. Raises ThreadGone, or OSError."""
        table = file.read()
        changed = table.lines
        if not compare_all and len(table.lines) == len(self._lines):
            changed = list(compress(table.lines, map(ne, table.lines, self._lines)))
        columns = table.columns(changed)
        gone, busy = self._enter(columns)
        foreign = self._compare(columns)
        if len(table.lines) != len(self._tids) or not self._tids.issuperset(columns.tids):
            self._tids = frozenset(table.columns(table.lines).tids)
            gone.extend(one for tid, one in self.members.items() if tid not in self._tids)
        self._lines = table.lines
        return LookedAt(gone, [], busy, foreign)

    def _enter(self, columns: Columns) -> tuple[list[ManagedThread], list[ManagedThread]]:
        """New totals; who is gone, and who is not. Those whose run time went back are gone: their
        number is another thread's by now."""
        gone: list[ManagedThread] = []
        there: list[ManagedThread] = []
        members, counters, ids, make = self.members, self._counters, self._ids, tuple.__new__
        cores: Iterable[int | None] = repeat(None) if columns.cores is None else columns.cores
        woken = _UNTOLD if columns.wakeups is None else zip(*columns.wakeups, strict=True)
        for tid, state, run_ns, ready_ns, voluntary, involuntary, late, word, cpu, counted in zip(
            columns.tids,
            columns.states,
            columns.run_ns,
            columns.ready_ns,
            columns.voluntary,
            columns.involuntary,
            columns.late,
            columns.wakers,
            cores,
            woken,
            strict=False,
        ):
            thread = members.get(tid)
            if thread is None:
                continue
            vcpu = ids[tid]
            if run_ns < counters[vcpu].on_cpu_ns:
                gone.append(thread)
                continue
            fields = (
                *(run_ns, ready_ns, voluntary + involuntary, _STATES.get(state, _IDLE)),
                Core(cpu) if cpu is not None else _core(thread, counters[vcpu].core),
                *(involuntary, late, self._woken_by(tid, word), *counted, *_NOT_BY_THIS),
            )
            counters[vcpu] = make(Counters, fields)
            there.append(thread)
        return gone, there

    def _woken_by(self, tid: int, word: bytes) -> _Wakers:
        """Who woke it, of the managed threads: the others have no name that outlives them."""
        known = self._wakers.get(tid)
        if known is not None and known[0] == word:
            return known[1]
        ids = self._ids
        found = tuple((ids[by], times) for by, times in dasecfile.wakers(word) if by in ids)
        self._wakers[tid] = (word, found)
        return found

    def _compare(self, columns: Columns) -> list[ManagedThread]:
        """Knobs that hold something else than we wrote; those that we do not hold are taken anew."""
        foreign: list[ManagedThread] = []
        members, known = self.members, self._knobs
        both = zip(columns.granularities, columns.weights, strict=True)
        for tid, words in zip(columns.tids, both, strict=True):
            thread = members.get(tid)
            if thread is None:
                continue
            held_granularity, held_weight = thread.held.get(GRANULARITY), thread.held.get(THREAD_WEIGHT)
            holds = held_granularity is not None or held_weight is not None
            if not holds and known.get(tid) == words:
                continue
            known[tid] = words
            granularity, weight = words
            if held_granularity is None:
                _look_at(thread, GRANULARITY, thread.knobs.rescheduling_latency_ns, granularity)
            elif held_granularity.shown != granularity:
                foreign.append(thread)
            if thread.weight is not None:
                continue
            if held_weight is None:
                _look_at(thread, THREAD_WEIGHT, thread.knobs.weight, weight)
            elif held_weight.shown != weight:
                foreign.append(thread)
        return foreign


def _look_at(thread: ManagedThread, kind: NativeKnob, shown: int | None, word: bytes) -> None:
    """A knob that was left to somebody else shows nothing, whatever it holds."""
    if shown is None or kind.serves is None:
        return
    if thread.model_of(kind, dasecfile.knob_word(word)) != shown:
        thread.take_anew(kind.serves)


def _core(thread: ManagedThread, last: Core) -> Core:
    """Where the file has no column for it: the pin, else what `stat` says."""
    affinity = thread.knobs.affinity
    if affinity is not None and len(affinity) == 1:
        return next(iter(affinity))
    try:
        return Core(procfs.parse_stat(os.pread(thread.kept.stat, _STAT_BYTES, 0)).core)
    except ProcessLookupError:
        return last
