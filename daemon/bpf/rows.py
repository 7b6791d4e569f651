"""The kernel's table of followed threads, decoded where it has changed since it was last read."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import compress
from operator import ne

from .edges import Activity, Edge

_TIMES = struct.Struct("<II15QII")
_EDGES = struct.Struct("<6I12Q")
"""The two parts of struct activity (bpf/edges_state.h)."""

_NEAR = 6
ROW_BYTES = _TIMES.size + _EDGES.size
_ROW = struct.Struct(f"{ROW_BYTES}s")
_READY, _RUNNING = 2, 3
_RUN, _WAIT, _CHAIN = 3, 4, 9
"""Places of the times in an Activity."""

_TOTALS = len(Activity._fields)

_COPIES = 4
"""A row is believed when two copies of it agree; after so many, the last is taken as it is."""


@dataclass(slots=True)
class Shown:
    """What the table last said of one thread; `wakers` are serial numbers."""

    activity: Activity = Activity()
    wakers: tuple[tuple[int, Edge], ...] = ()


class SlotRows:
    """The rows of all slots, as memory that the kernel writes."""

    def __init__(self, memory: memoryview, *, times: bool) -> None:
        self._memory = memory
        self._times = times
        self._known: list[bytes] = []
        self._moving: set[int] = set()

    def stirred(self, slots: int) -> list[tuple[int, bytes]]:
        """Which of the first slots tell anything else than the last time, and their rows, each perhaps in
        the middle of a change.

        Most threads sleep through: their rows are the same byte for byte, and cost one comparison.
        """
        rows = [row for (row,) in _ROW.iter_unpack(self._memory[: slots * ROW_BYTES])]
        self._known.extend([b""] * (slots - len(self._known)))
        differ = compress(range(slots), map(ne, rows, self._known))
        return [(slot, rows[slot]) for slot in sorted(self._moving.union(differ))]

    def update(self, shown: Shown, slot: int, raw: bytes, now_ns: int) -> None:
        """Bring up to date what a slot shows."""
        known = self._known[slot]
        if raw != known:
            raw = self._known[slot] = self._settled(slot * ROW_BYTES, raw)
        _, state, since_ns, *numbers, in_chain, _ = _TIMES.unpack_from(raw)
        if self._times and state in (_READY, _RUNNING):
            self._moving.add(slot)
            passed_ns = max(0, now_ns - since_ns)
            numbers[_WAIT if state == _READY else _RUN] += passed_ns
            numbers[_CHAIN] += passed_ns if in_chain else 0
        else:
            self._moving.discard(slot)
        # Like Activity(...), without the Python code of a named tuple's constructor (decision 0003).
        shown.activity = tuple.__new__(Activity, numbers[:_TOTALS])
        if raw[_TIMES.size :] != known[_TIMES.size :]:
            shown.wakers = tuple(_edges(raw))

    def forget(self, slot: int) -> None:
        """Nobody's row from now on, until it is another thread's."""
        if slot < len(self._known):
            self._known[slot] = b""
        self._moving.discard(slot)

    def _settled(self, first: int, raw: bytes) -> bytes:
        for _ in range(_COPIES):
            again = bytes(self._memory[first : first + ROW_BYTES])
            if again == raw:
                break
            raw = again
        return raw

    def close(self) -> None:
        """Let go of the memory."""
        self._memory.release()


def _edges(raw: bytes) -> Iterator[tuple[int, Edge]]:
    row = _EDGES.unpack_from(raw, _TIMES.size)
    for at in range(_NEAR):
        if row[at] == 0:
            return
        first = _NEAR + 2 * at
        yield row[at], Edge(row[first], row[first + 1])
