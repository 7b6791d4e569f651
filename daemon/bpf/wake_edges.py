"""The BPF wake-edge monitor: which threads it follows, and what it has counted.

Each followed thread has a slot, its place in the kernel's table, and a serial number that is given once.
A slot that falls free rests until two readings later: a program that was under way on another core
when its thread was forgotten may still write there. Where there are more threads than slots, each workload
has its part of them, whoever came first.
"""

from __future__ import annotations

import ctypes
import itertools
import struct
import time
from collections import Counter
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from ..model import Level, VcpuId
from ..parts import fair_parts
from . import libbpf
from .edges import Activity, Edge, NoEdges, Reading, WakeEdges, Wakers
from .extent import ALL, OURS, PROGRAMS, SWITCHING, Extent, brackets
from .rows import ROW_BYTES, Shown, SlotRows

_MISSED = 2
"""Its place in struct totals."""

_KEY = struct.Struct("<II")
_VALUE = struct.Struct("<QQ")


class _Renewal(ctypes.Structure):
    _fields_ = (("slots", ctypes.c_uint32), ("unused", ctypes.c_uint32))


class _Order(ctypes.Structure):
    _fields_ = (
        ("slot", ctypes.c_uint32),
        ("tid", ctypes.c_uint32),
        ("start_ticks", ctypes.c_uint64),
        ("serial", ctypes.c_uint32),
        ("workload", ctypes.c_uint32),
    )


@dataclass(frozen=True, slots=True)
class _Place:
    slot: int
    serial: int
    workload: int
    shown: Shown = field(default_factory=Shown)


class CountsSwitches(Protocol):
    """A scheduler that sees by itself when threads get and lose their CPUs (scx_counts.h)."""

    @property
    def object(self) -> libbpf.BpfObject:
        """Loaded for the extent of the monitor, all of whose other programs are in it, too."""

    def count_switches(self, wanted: bool) -> None:
        """Count them, or do not."""


class BpfEdges:
    """A WakeEdges that counts in the kernel; by a `scheduler` that counts switches, in that one's object and
    as long as it is open. Raises libbpf.BpfUnavailable when made where it cannot."""

    def __init__(self, extent: Extent, scheduler: CountsSwitches | None = None) -> None:
        level, slots, edges = extent
        self.level = level
        self._scheduler = scheduler
        if scheduler is None:
            loaded = libbpf.load("wake_edges", sizes=extent.sizes(), without=extent.left_out())
        else:
            loaded = scheduler.object
        self._object, self._is_own = loaded, scheduler is None
        self._brackets = brackets(ALL if scheduler is None else OURS)
        try:
            for program in self._brackets:
                self._object.attach(program)
            self._attach_all()
        except libbpf.BpfUnavailable:
            self._leave_kernel()
            raise
        self.watching = True
        self._not_missed = 0
        self._order, self._renewal = _Order(), _Renewal()
        self._renew = self._object.program("renew", self._renewal)
        self._follow = self._object.program("follow", self._order)
        self._forget = self._object.program("forget", self._order)
        rows = memoryview(self._object.view("activities", slots * ROW_BYTES))
        self._table = SlotRows(rows, times=level is Level.FULL)
        self._totals = memoryview(self._object.view("totals", 24)).cast("Q")
        self._edges = libbpf.HashMap(self._object.map_descriptor("edges"), _KEY.size, _VALUE.size, edges)
        self._places: dict[VcpuId, _Place] = {}
        self._seated: dict[int, tuple[VcpuId, Shown]] = {}
        self._by_serial: dict[int, VcpuId] = {}
        self._free = list(range(slots - 1, -1, -1))
        self._resting: tuple[list[int], list[int]] = ([], [])
        self._slots, self._most_edges = slots, edges
        self._serials = itertools.count(1)
        self._waiting: dict[VcpuId, int] = {}
        """Threads with their workloads that are to have a slot as soon as one is free."""
        self._used = 0
        self._threads: dict[VcpuId, Activity] = {}
        self._near: dict[VcpuId, Wakers] = {}

    @property
    def note(self) -> str:
        """See WakeEdges."""
        where = "sched_waking" if self._scheduler is None else "sched_waking and in our scheduler"
        room = f"at most {self._slots} threads and {self._most_edges} edges"
        return f"BPF monitor at {where}, {self.level}: {room}"

    def follow(self, workload_of: Mapping[VcpuId, int]) -> Mapping[int, int]:
        """Follow these threads and no others, of each workload its part. By workload: how many have no slot.
        One that ended is left out and does not count."""
        chosen = share_out(workload_of, self._places, self._slots)
        gone = {who for who, place in self._places.items() if chosen.get(who) != place.workload}
        for who in gone:
            self._leave(who, self._places[who])
        if gone:
            self._near = {
                wakee: tuple([one for one in wakers if one[0] not in gone])
                for wakee, wakers in self._near.items()
                if wakee not in gone
            }
        self._waiting = {who: workload for who, workload in chosen.items() if who not in self._places}
        self._seat_some()
        left_out = Counter([workload for who, workload in workload_of.items() if who not in chosen])
        return dict(left_out)

    def watch(self, wanted: bool) -> None:
        """See WakeEdges. What marks interrupts stays attached: one whose beginning is not seen would be no
        interrupt at its end."""
        if wanted == self.watching:
            return
        if wanted:
            self._begin()
        self.watching = wanted
        if not wanted:
            self._detach_all()
            self._forget_states()

    def read(self) -> Reading:
        """The totals now. Who has done nothing since the last reading has the very Activity it had there."""
        stirred, now_ns = self._table.stirred(self._used), time.monotonic_ns()
        for slot, row in stirred:
            seated = self._seated.get(slot)
            if seated is not None:
                who, shown = seated
                known = shown.wakers
                self._table.update(shown, slot, row, now_ns)
                self._threads[who] = shown.activity
                if shown.wakers is not known:
                    self._near[who] = self._near_edges(shown)
        rested, resting = self._resting
        self._free.extend(rested)
        self._resting = (resting, [])
        if self._waiting and rested:
            self._seat_some()
        far, lost, missed = self._totals
        wakers = dict(self._near)
        for wakee, edge in self._far_edges() if far else ():
            wakers[wakee] = (*wakers.get(wakee, ()), edge)
        return Reading(dict(self._threads), wakers, lost, missed - self._not_missed)

    def lose_scheduler(self) -> None:
        """It schedules no more: from now on switches are seen as under any other. Raises as watch() does."""
        if self._scheduler is None:
            return
        self._scheduler = None
        if self.watching:
            self.watch(False)
            self.watch(True)

    def close(self) -> None:
        """Detach and unload. Idempotent."""
        self._table.close()
        self._totals.release()
        self._leave_kernel()

    def _leave_kernel(self) -> None:
        if self._is_own:
            self._object.close()
            return
        self._detach_all()
        for program in self._brackets:
            self._object.detach(program)

    def _begin(self) -> None:
        """Attach all programs or none. Between two of them one sees half of what happens, so what it makes of
        that is forgotten, and what it misses is nothing missed."""
        self._forget_states()
        missed = self._totals[_MISSED]
        try:
            self._attach_all()
            self._forget_states()
        except (libbpf.BpfUnavailable, OSError):
            self._detach_all()
            raise
        self._not_missed += self._totals[_MISSED] - missed

    def _forget_states(self) -> None:
        """Nobody knows what the threads are doing."""
        self._renewal.slots = self._used
        self._renew.run()

    def _attach_all(self) -> None:
        for program in PROGRAMS[self.level]:
            if program != SWITCHING or self._scheduler is None:
                self._object.attach(program)
        if self._scheduler is not None:
            self._scheduler.count_switches(True)

    def _detach_all(self) -> None:
        if self._scheduler is not None:
            self._scheduler.count_switches(False)
        for program in PROGRAMS[self.level]:
            self._object.detach(program)

    def _seat_some(self) -> None:
        """As many of those who wait as there are slots; one that has ended waits no more."""
        here = list(self._waiting)[: len(self._free)]
        for who in here:
            self._enter(who, self._waiting.pop(who))
        if here and not self.watching:
            self._forget_states()

    def _enter(self, who: VcpuId, workload: int) -> None:
        place = _Place(self._free[-1], next(self._serials), workload)
        self._give_order(who, place)
        if self._follow.run() == 0:
            self._free.pop()
            self._places[who] = place
            self._seated[place.slot] = who, place.shown
            self._threads[who] = place.shown.activity
            self._by_serial[place.serial] = who
            self._used = max(self._used, place.slot + 1)

    def _leave(self, who: VcpuId, place: _Place) -> None:
        self._give_order(who, place)
        self._forget.run()
        del self._places[who], self._threads[who], self._by_serial[place.serial], self._seated[place.slot]
        self._table.forget(place.slot)
        self._resting[1].append(place.slot)

    def _give_order(self, who: VcpuId, place: _Place) -> None:
        order = self._order
        order.slot, order.serial, order.workload = place.slot, place.serial, place.workload
        order.tid, order.start_ticks = who.tid, who.start_ticks

    def _near_edges(self, shown: Shown) -> Wakers:
        """The edges that lie beside their wakee."""
        who = self._by_serial
        return tuple([(who[serial], edge) for serial, edge in shown.wakers if serial in who])

    def _far_edges(self) -> Iterator[tuple[VcpuId, tuple[VcpuId, Edge]]]:
        """By wakee, the edges that found no room there. Those of threads that are not followed any more are
        dropped."""
        keys, values = self._edges.read()
        for key, value in zip(_KEY.iter_unpack(keys), _VALUE.iter_unpack(values), strict=True):
            waker, wakee = self._by_serial.get(key[0]), self._by_serial.get(key[1])
            if waker is None or wakee is None:
                self._edges.drop(_KEY.pack(*key))
            else:
                yield wakee, (waker, Edge(*value))


def share_out(workload_of: Mapping[VcpuId, int], here: Container[VcpuId], slots: int) -> Mapping[VcpuId, int]:
    """Who of these threads has a slot: all, or of each workload its part, those who are `here` first."""
    if len(workload_of) <= slots:
        return workload_of
    threads: dict[int, list[VcpuId]] = {}
    for who, workload in workload_of.items():
        threads.setdefault(workload, []).append(who)
    parts = fair_parts([len(own) for own in threads.values()], slots)
    return {
        who: workload
        for (workload, own), part in zip(threads.items(), parts, strict=True)
        for who in sorted(own, key=lambda who: who not in here)[:part]
    }


def open_edges(extent: Extent) -> WakeEdges:
    """The best source of edges that this host has for that; NoEdges, which says why, if none."""
    if extent.level is Level.NONE:
        return NoEdges("not asked for")
    try:
        return BpfEdges(extent)
    except libbpf.BpfUnavailable as reason:
        return NoEdges(f"no wake-up sources: {reason}")
