"""Workloads as discovery finds them: names, shares and threads, which the host turns into vCPUs."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import repeat
from typing import NamedTuple

from .model import Core, CpuWish, VcpuId


class Terms(NamedTuple):
    """What is known of a thread that somebody else made and keeps, libvirt for one: which thread it has to
    be, and the cores that he lets it use (None: any). Its groups are his: it never gets one of ours.

    `emulator`: it is no vCPU but QEMU's main thread, or one of its I/O threads. Only its weight is ours, and
    that is the one of the group that it shares with QEMU's other threads. Slice and mask it hands on to each
    thread that it starts.
    """

    start_ticks: int
    cores: frozenset[Core] | None
    emulator: bool = False


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
    start time of each thread, in order, or none at all: a number may be somebody else's by now. `wish`:
    the CPUs that it asks for itself.
    """

    name: str
    share: int | None
    threads: tuple[tuple[int, int], ...]
    terms: tuple[Terms, ...] = ()
    home: str | None = None
    births: tuple[int, ...] = ()
    wish: CpuWish | None = None

    def members(self) -> Iterator[Member]:
        """Each thread with what is known of it."""
        count = len(self.threads)
        births = self.births or [terms.start_ticks for terms in self.terms] or repeat(None, count)
        return map(Member, self.threads, self.terms or repeat(None, count), births)
