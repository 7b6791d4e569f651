"""What a wake-edge monitor says: values, and the interface that any source of them offers.

Blame of a thread v is time during which v was ready (not running) while a sibling slept that v later
woke, counted once for each sibling: interference on the critical path, in nanoseconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from ..model import Level, VcpuId


class Activity(NamedTuple):
    """One thread's running totals since it is followed.

    `sibling`, `external` and `timer` count its wake-ups by who made them; a burst ends when the thread
    goes to sleep; `sleep_ns` is of sleeps that have ended; `preemptions` are switches that it did not ask
    for; `chain_ns` is the run and ready time of its episodes (from a wake-up to the next sleep) that
    somebody else started or that woke a sibling. `blame_cut` counts blames that are too low, because
    the sibling slept through more of this thread's ready times than are kept. `outward` counts the wake-ups
    that it made itself, not an interrupt, of threads outside its workload.
    """

    sibling: int = 0
    external: int = 0
    timer: int = 0
    run_ns: int = 0
    ready_ns: int = 0
    sleep_ns: int = 0
    bursts: int = 0
    dispatches: int = 0
    preemptions: int = 0
    chain_ns: int = 0
    blame_ns: int = 0
    blame_cut: int = 0
    outward: int = 0


class Edge(NamedTuple):
    """How often a thread woke a sibling, and the part of its blame that it had at those times."""

    wakeups: int
    blame_ns: int


Pair = tuple[VcpuId, VcpuId]
"""Waker and wakee."""


Wakers = tuple[tuple[VcpuId, Edge], ...]
"""Who woke a thread, and the edge from each."""


@dataclass(frozen=True, slots=True)
class Reading:
    """Running totals of all followed threads, and of the edges between them by who was woken.

    `lost`: wake-ups by siblings that found no room among the edges; they are in the wakee's Activity.
    `missed` (level full): wake-ups and dispatches that were not seen, but must have been, by what came
    next. The time until then is sleep in the first case, nothing in the second, and blames nobody.
    """

    threads: Mapping[VcpuId, Activity]
    wakers: Mapping[VcpuId, Wakers]
    lost: int
    missed: int

    @property
    def edges(self) -> Mapping[Pair, Edge]:
        """The edges by pair."""
        return {(waker, wakee): edge for wakee, edges in self.wakers.items() for waker, edge in edges}


NOTHING = Reading({}, {}, lost=0, missed=0)


class WakeEdges(Protocol):
    """A source of edges: a BPF monitor, a kernel that counts them itself, or none."""

    @property
    def level(self) -> Level:
        """How much it counts."""

    @property
    def note(self) -> str:
        """How it counts, or why it does not, in one line."""

    def follow(self, workload_of: Mapping[VcpuId, int]) -> Mapping[int, int]:
        """Follow these threads and no others; threads with the same number are siblings. By number: how many
        there is no room for."""

    @property
    def watching(self) -> bool:
        """Does it count at present?"""

    def watch(self, wanted: bool) -> None:
        """Count, or count nothing, which makes wake-ups cheaper; who is followed stays so. What a thread was
        doing when counting begins is not known: its time counts from when it next gets or loses a core.
        Idempotent; raises BpfUnavailable or OSError, and counts nothing, if the kernel does not let it."""

    def read(self) -> Reading:
        """The totals now. A thread that ended stays until it is not followed any more."""

    def close(self) -> None:
        """Stop counting; leave nothing in the kernel. Idempotent."""


@dataclass(frozen=True, slots=True)
class NoEdges:
    """Counts nothing, and says why."""

    note: str
    level: Level = Level.NONE
    watching: bool = False

    def follow(self, workload_of: Mapping[VcpuId, int]) -> Mapping[int, int]:  # noqa: ARG002  # as in WakeEdges
        """Nobody is followed, as whoever reads the level knows."""
        return {}

    def watch(self, wanted: bool) -> None:
        """It cannot."""

    def read(self) -> Reading:
        """Nothing."""
        return NOTHING

    def close(self) -> None:
        """There is nothing to stop."""
