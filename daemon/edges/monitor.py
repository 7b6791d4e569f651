"""The BPF wake-edge monitor: which threads it follows, and what it has counted.

Each followed thread has a slot, its place in the kernel's table, and a serial number that is given once.
A slot that falls free rests until two readings later: a program that was under way on another core
when its thread was forgotten may still write there.
"""

from __future__ import annotations

import ctypes
import itertools
import struct
import time
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from ..linux import bpf
from ..model import VcpuId
from .reading import Activity, Edge, Level, NoEdges, Pair, Reading, WakeEdges

SLOTS = 4096
EDGES = 16_384
"""Reading walks over room as well as over edges: 0.03 ms for this many (docs/measurements.md)."""

INTERRUPTS = ("local_timer", "irq_handler", "call_function", "call_function_single", "irq_work", "softirq")
_BRACKETS = tuple(f"{name}_{end}" for name in INTERRUPTS for end in ("ends", "begins"))
"""The end first: attaching sends interrupts itself, and one that only began would never end."""

_PROGRAMS = {Level.EDGES: ("waking_edges",), Level.FULL: ("switching", "waking_full")}

_NEAR = 6
_ROW = struct.Struct(f"<II14QII{_NEAR}I{2 * _NEAR}QQ")
_WAKERS, _EDGES = slice(18, 18 + _NEAR), 18 + _NEAR
_KEY = struct.Struct("<II")
_VALUE = struct.Struct("<QQ")
_ASLEEP, _READY, _RUNNING = 1, 2, 3
_RUN, _WAIT, _SLEEP, _CHAIN = 3, 4, 5, 9
"""Places of the times in an Activity."""

_COPIES = 4
"""A row is believed when two copies of it agree; after so many, the last is taken as it is."""


class _Order(ctypes.Structure):
    _fields_ = (
        ("slot", ctypes.c_uint32),
        ("tid", ctypes.c_uint32),
        ("start_ticks", ctypes.c_uint64),
        ("serial", ctypes.c_uint32),
        ("workload", ctypes.c_uint32),
    )


class _Place(NamedTuple):
    slot: int
    serial: int
    workload: int


class BpfEdges:
    """A WakeEdges that counts in the kernel. Raises bpf.BpfUnavailable when made where it cannot."""

    def __init__(self, level: Level, slots: int = SLOTS, edges: int = EDGES) -> None:
        self.level = level
        self.note = f"BPF monitor at sched_waking, {level}: at most {slots} threads and {edges} edges"
        others = [name for other in _PROGRAMS if other is not level for name in _PROGRAMS[other]]
        past = slots if level is Level.FULL else 1
        sizes = {"threads": slots, "pasts": past, "edges": edges}
        self._object = bpf.load("wake_edges", sizes=sizes, without=others)
        try:
            for program in (*_BRACKETS, *_PROGRAMS[level]):
                self._object.attach(program)
        except bpf.BpfUnavailable:
            self._object.close()
            raise
        self._order = _Order()
        self._follow = self._object.program("follow", self._order)
        self._forget = self._object.program("forget", self._order)
        self._rows = memoryview(self._object.view("threads", slots * _ROW.size))
        self._lost = memoryview(self._object.view("lost", 8)).cast("Q")
        self._edges = bpf.HashMap(self._object.map_descriptor("edges"), _KEY.size, _VALUE.size, edges)
        self._places: dict[VcpuId, _Place] = {}
        self._by_serial: dict[int, VcpuId] = {}
        self._free = list(range(slots - 1, -1, -1))
        self._resting: tuple[list[int], list[int]] = ([], [])
        self._serials = itertools.count(1)
        self._used = 0

    def follow(self, workload_of: Mapping[VcpuId, int]) -> None:
        """Follow these threads and no others; one that ended or finds no slot is left out."""
        for who, place in list(self._places.items()):
            if workload_of.get(who) != place.workload:
                self._leave(who, place)
        for who, workload in workload_of.items():
            if who not in self._places and self._free:
                self._enter(who, workload)

    def read(self) -> Reading:
        """The totals now."""
        rows = self._copy()
        totals = _up_to(time.monotonic_ns()) if self.level is Level.FULL else _as_counted
        threads = {who: totals(rows[place.slot]) for who, place in self._places.items()}
        rested, resting = self._resting
        self._free.extend(rested)
        self._resting = (resting, [])
        edges = dict(self._far_edges())
        for who, place in self._places.items():
            edges.update(self._near_edges(who, rows[place.slot]))
        return Reading(threads, edges, self._lost[0])

    def close(self) -> None:
        """Detach and unload. Idempotent."""
        self._rows.release()
        self._lost.release()
        self._object.close()

    def _enter(self, who: VcpuId, workload: int) -> None:
        place = _Place(self._free[-1], next(self._serials), workload)
        self._give_order(who, place)
        if self._follow.run() == 0:
            self._free.pop()
            self._places[who] = place
            self._by_serial[place.serial] = who
            self._used = max(self._used, place.slot + 1)

    def _leave(self, who: VcpuId, place: _Place) -> None:
        self._give_order(who, place)
        self._forget.run()
        del self._places[who], self._by_serial[place.serial]
        self._resting[1].append(place.slot)

    def _give_order(self, who: VcpuId, place: _Place) -> None:
        order = self._order
        order.slot, order.serial, order.workload = place
        order.tid, order.start_ticks = who.tid, who.start_ticks

    def _copy(self) -> list[tuple[int, ...]]:
        """All used rows, each as it was at one instant."""
        size = self._used * _ROW.size
        before = bytes(self._rows[:size])
        for _ in range(_COPIES):
            after = bytes(self._rows[:size])
            if after == before:
                break
            before = after
        return list(_ROW.iter_unpack(before))

    def _near_edges(self, wakee: VcpuId, row: tuple[int, ...]) -> Iterator[tuple[Pair, Edge]]:
        """The edges that lie beside their wakee."""
        for at, serial in enumerate(row[_WAKERS]):
            if serial == 0:
                return
            waker = self._by_serial.get(serial)
            if waker is not None:
                first = _EDGES + 2 * at
                yield (waker, wakee), Edge(row[first], row[first + 1])

    def _far_edges(self) -> Iterator[tuple[Pair, Edge]]:
        """The edges that found no room there. Those of threads that are not followed any more are dropped."""
        keys, values = self._edges.read()
        for key, value in zip(_KEY.iter_unpack(keys), _VALUE.iter_unpack(values), strict=True):
            waker, wakee = self._by_serial.get(key[0]), self._by_serial.get(key[1])
            if waker is None or wakee is None:
                self._edges.drop(_KEY.pack(*key))
            else:
                yield (waker, wakee), Edge(*value)


def _as_counted(row: tuple[int, ...]) -> Activity:
    return Activity(*row[3:15])


def _up_to(now_ns: int) -> Callable[[tuple[int, ...]], Activity]:
    """The totals of a row, with what has passed since its last event."""

    def totals(row: tuple[int, ...]) -> Activity:
        state, since_ns, in_chain = row[1], row[2], row[16]
        numbers = list(row[3:15])
        passed_ns = max(0, now_ns - since_ns)
        if state == _ASLEEP:
            numbers[_SLEEP] += passed_ns
        elif state in (_READY, _RUNNING):
            numbers[_WAIT if state == _READY else _RUN] += passed_ns
            numbers[_CHAIN] += passed_ns if in_chain else 0
        return Activity(*numbers)

    return totals


def open_edges(level: Level, slots: int = SLOTS, edges: int = EDGES) -> WakeEdges:
    """The best source of edges that this host has for that level; NoEdges, which says why, if none."""
    if level is Level.NONE:
        return NoEdges("not asked for")
    try:
        return BpfEdges(level, slots, edges)
    except bpf.BpfUnavailable as reason:
        return NoEdges(f"no wake-up sources: {reason}")
