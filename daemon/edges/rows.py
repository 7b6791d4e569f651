"""The kernel's table of followed threads, decoded where it has changed since it was last read."""

from __future__ import annotations

import struct
from dataclasses import dataclass

from .reading import Activity, Edge

_NEAR = 6
_ROW = struct.Struct(f"<II14QII{_NEAR}I{2 * _NEAR}QQ")
"""struct thread (bpf/wake_edges.bpf.c)."""

ROW_BYTES = _ROW.size
_WAKERS, _EDGES = slice(18, 18 + _NEAR), 18 + _NEAR
_READY, _RUNNING = 2, 3
_RUN, _WAIT, _CHAIN = 3, 4, 9
"""Places of the times in an Activity."""

_COPIES = 4
"""A row is believed when two copies of it agree; after so many, the last is taken as it is."""


@dataclass(slots=True)
class Shown:
    """What the table last said of one thread; `wakers` are serial numbers."""

    raw: bytes = b""
    moves: bool = False
    activity: Activity = Activity()
    wakers: tuple[tuple[int, Edge], ...] = ()


class Table:
    """The rows of all slots, as memory that the kernel writes."""

    def __init__(self, memory: memoryview, *, times: bool) -> None:
        self._memory = memory
        self._times = times

    def copy(self, slots: int) -> bytes:
        """The first rows, each perhaps in the middle of a change."""
        return bytes(self._memory[: slots * ROW_BYTES])

    def update(self, shown: Shown, copy: bytes, slot: int, now_ns: int) -> bool:
        """Bring up to date what a slot shows; whether it tells anything else than the last time.

        Most threads sleep through: their rows are the same byte for byte, and cost one comparison.
        """
        first = slot * ROW_BYTES
        raw = copy[first : first + ROW_BYTES]
        if raw == shown.raw and not shown.moves:
            return False
        if raw != shown.raw:
            raw = self._settled(first, raw)
        row = _ROW.unpack(raw)
        shown.raw = raw
        numbers = list(row[3:15])
        state, since_ns, in_chain = row[1], row[2], row[16]
        shown.moves = self._times and state in (_READY, _RUNNING)
        if shown.moves:
            passed_ns = max(0, now_ns - since_ns)
            numbers[_WAIT if state == _READY else _RUN] += passed_ns
            numbers[_CHAIN] += passed_ns if in_chain else 0
        shown.activity = Activity(*numbers)
        counts = zip(row[_EDGES::2], row[_EDGES + 1 :: 2], strict=False)
        shown.wakers = tuple(
            (serial, Edge(*count)) for serial, count in zip(row[_WAKERS], counts, strict=False) if serial
        )
        return True

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
