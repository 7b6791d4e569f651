"""The counters of all managed threads in one system call: the BPF object thread_counters.

A row comes out for every thread that ran or waited since the last time, is awake, has ended, or whose
knobs somebody has written; a thread that slept through costs nothing here.
"""

from __future__ import annotations

import ctypes
import struct
from enum import IntEnum
from typing import NamedTuple

from . import libbpf

SEATS = 16384
"""As in thread_counters.bpf.c, where it is an upper bound; asking for fewer saves memory."""

_ROW = struct.Struct("<IBBH6Q")


class State(IntEnum):
    """What the thread was doing, as the kernel's own run queue knows it."""

    SLEEPING = 0
    QUEUED = 1
    RUNNING = 2
    ENDED = 3


class ThreadTotals(NamedTuple):
    """One thread's running totals since it started."""

    seat: int
    state: int
    policy: int
    core: int
    on_cpu_ns: int
    ready_ns: int
    dispatches: int
    voluntary_switches: int
    involuntary_switches: int
    knobs: int


class _Seating(ctypes.Structure):
    _fields_ = (("seat", ctypes.c_uint32), ("tid", ctypes.c_uint32), ("start_ticks", ctypes.c_uint64))


class _Collecting(ctypes.Structure):
    _fields_ = tuple((name, ctypes.c_uint32) for name in ("seats", "rows", "all", "unused"))


class ThreadCounters:
    """Seats for threads, and their counters. Raises libbpf.BpfUnavailable when made where it cannot work."""

    def __init__(self, seats: int = SEATS) -> None:
        self._object = libbpf.load("thread_counters", sizes={"seats": seats, "rows": seats})
        self._seating = _Seating()
        self._seat = self._object.program("seat", self._seating)
        self._collecting = _Collecting()
        self._collect = self._object.program("collect", self._collecting)
        self._rows = memoryview(self._object.view("rows", seats * _ROW.size))
        self._used = 0
        self.seats = seats

    def seat(self, seat: int, tid: int, start_ticks: int) -> bool:
        """Give the thread this seat; whoever had it leaves. False: there is no such thread (any more)."""
        self._seating.seat, self._seating.tid, self._seating.start_ticks = seat, tid, start_ticks
        seated = self._seat.run() == 0
        if seated:
            self._used = max(self._used, seat + 1)
        return seated

    def leave(self, seat: int) -> None:
        """Nobody has this seat any more."""
        self._seating.seat, self._seating.tid = seat, 0
        self._seat.run()

    def read(self, *, sleepers: bool = False) -> list[ThreadTotals]:
        """The rows of all who were awake since the last time; of everybody with `sleepers`."""
        asked = self._collecting
        asked.seats, asked.all = self._used, sleepers
        self._collect.run()
        return list(map(ThreadTotals._make, _ROW.iter_unpack(self._rows[: asked.rows * _ROW.size])))

    def close(self) -> None:
        """Unload. Idempotent."""
        self._rows.release()
        self._object.close()
