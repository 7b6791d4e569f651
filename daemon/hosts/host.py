"""What every host offers: capabilities, observe, apply, restore. Nothing else touches a kernel."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import repeat
from typing import NamedTuple, Protocol

from ..model import Change, Core, Result, Snapshot, VcpuId

ROOM = 16_384
"""Threads on the whole host. BPF has seats for so many (linux/threadcounters.py): with one more, every thread
would be read from /proc. The journal has room for four knobs of each."""

MOST_THREADS = 4096
"""Threads of one workload, by default: when all work, a look at so many takes 50 ms (docs/overhead.md). There
are as many slots for wake-ups."""


class Terms(NamedTuple):
    """What is known of a thread that somebody else made and keeps, libvirt for one: which thread it has to
    be, and the cores that he lets it use (None: any). Its groups are his: it never gets one of ours."""

    start_ticks: int
    cores: frozenset[Core] | None


class Member(NamedTuple):
    """One thread of a roster: (pid, tid), its terms, and when it started, where that is known."""

    numbers: tuple[int, int]
    terms: Terms | None
    start_ticks: int | None

    def is_(self, thread: VcpuId) -> bool:
        """Is it this thread, of those that have or had its numbers?"""
        return self.start_ticks in (None, thread.start_ticks)


class RosterEntry(NamedTuple):
    """One workload as discovery sees it: its name, its share if one was configured, and its
    threads as (pid, tid) pairs. The host turns it into a Workload of identified vCPUs.

    `terms`: one for each thread, in order, or none at all. `home`: the group around the whole workload, where
    discovery knows it better than the threads show (a single vCPU sits in a group of its own). `births`: the
    start time of each thread, in order, or none at all: a number may be somebody else's by now.
    """

    name: str
    share: int | None
    threads: tuple[tuple[int, int], ...]
    terms: tuple[Terms, ...] = ()
    home: str | None = None
    births: tuple[int, ...] = ()

    def members(self) -> Iterator[Member]:
        """Each thread with what is known of it."""
        count = len(self.threads)
        births = self.births or [terms.start_ticks for terms in self.terms] or repeat(None, count)
        return map(Member, self.threads, self.terms or repeat(None, count), births)


class Finding(NamedTuple):
    """Does it work, and how or why not."""

    works: bool
    note: str


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What this host can do, found by trying. Each `*_note` says how, or why not."""

    backend: str
    weight: bool
    weight_note: str
    rescheduling_latency: bool
    rescheduling_latency_note: str
    affinity: bool
    affinity_note: str
    wake_edges: bool
    wake_edges_note: str
    warnings: tuple[str, ...] = ()
    nested_weight: bool = True
    """May a weight be written below a group of a workload's own? Not where re-weighting starves its
    neighbours (hosts/reweight.py)."""


@dataclass(frozen=True, slots=True)
class Restored:
    """What `restore` did: knobs put back, knobs left alone because somebody else changed
    them since, knobs whose thread is gone, knobs that could not be put back (with why), and
    slices of threads that left the fair class: they stay held until it is fair again."""

    put_back: int
    left_alone: tuple[str, ...]
    vanished: int
    failed: tuple[str, ...]
    waiting: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Shortfall:
    """What a host leaves out for want of room. By workload, now: threads beyond the bound, which are left
    alone, and managed ones without a slot, whose wake-ups nobody counts. Since it was made: wake-ups lost and
    missed, as in a Reading (edges/reading.py)."""

    left_out: Mapping[str, int] = field(default_factory=dict)
    unheard: Mapping[str, int] = field(default_factory=dict)
    lost: int = 0
    missed: int = 0


class Host(Protocol):
    """A kernel, or a fake of one. Implementations pass tests/contract/."""

    @property
    def capabilities(self) -> Capabilities:
        """What this host can do; probed once, when the host is made."""

    def observe(self, roster: Sequence[RosterEntry]) -> Snapshot:
        """The state of every vCPU of the roster now. A vanished thread is left out, never an error."""

    def apply(self, changes: Sequence[Change]) -> tuple[Result, ...]:
        """Journal, check identity, write. One Result a Change, in order; never raises for one thread."""

    def restore(self) -> Restored:
        """Put every knob that we hold back to its prior value. Idempotent."""

    def notices(self) -> tuple[str, ...]:
        """What an operator should hear, each once."""

    def shortfall(self) -> Shortfall:
        """What is left out for want of room."""

    def close(self) -> None:
        """Put everything back and let all descriptors go."""
