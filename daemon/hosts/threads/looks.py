"""What a look at the managed threads finds, however a host reads them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol, TypeVar

from .thread import ManagedThread

SLEEPERS_READ_BACK = 48
"""Sleepers whose slice and mask are read back a period: 0.1 ms, all of them up to this many."""

T = TypeVar("T")


class LookedAt(NamedTuple):
    """What one look found: threads that ended; threads that must not be touched any more, with
    the reason; threads whose slice and mask to read back now; and threads to look at closely."""

    gone: list[ManagedThread]
    turned: list[tuple[ManagedThread, str]]
    suspects: Sequence[ManagedThread]
    closely: Sequence[ManagedThread]


def in_turn(threads: Sequence[T], turn: int, count: int) -> Sequence[T]:
    """So many of the threads, others at each turn, until all had theirs."""
    start = turn * count % max(1, len(threads))
    return threads[start : start + count]


class Looks(Protocol):
    """Reads a set of threads once a period, and brings their counters up to date."""

    def take(self, clock_ns: int) -> LookedAt:
        """Read what has to be read."""
