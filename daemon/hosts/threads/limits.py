"""What limits each workload: looked at each period, only for workloads that have a limit."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ...bandwidth.rates import CORE_PPM
from ...linux import bandwidth, cgroupfs
from ...linux.cgroupfs import Hierarchy
from ...linux.errors import ThreadGone
from ...linux.knob import NativeKnob
from ...model import Limits, OwnLimit
from .thread import ManagedThread


class Limited(NamedTuple):
    """A workload, its tightest limit in millionths of a core and the directory of the group that has it, and
    those of its threads whose own group has none."""

    workload: str
    around_ppm: int
    directory: str
    threads: Sequence[ManagedThread]


class LimitLooks:
    """Reads the counters of limited groups."""

    def __init__(self, hierarchy: Hierarchy | None) -> None:
        self._hierarchy = hierarchy
        self._limited: tuple[Limited, ...] = ()

    def follow(self, homes: Mapping[str, str], threads: Sequence[ManagedThread]) -> None:
        """These are the groups around all threads of a workload, of those that have one, and all threads."""
        members: dict[str, list[ManagedThread]] = {name: [] for name in homes}
        for thread in threads:
            if thread.workload in members and self._can_be_capped(thread):
                members[thread.workload].append(thread)
        self._limited = tuple(
            one for name, home in homes.items() if (one := self._limit(name, home, members[name])) is not None
        )

    def take(self) -> dict[str, Limits]:
        """Totals as they are now. A group that vanished limits nobody."""
        found: dict[str, Limits] = {}
        for workload, around_ppm, directory, threads in self._limited:
            try:
                use = bandwidth.usage_of(directory)
            except (ThreadGone, OSError):
                continue
            own = {thread.id: _own(thread) for thread in threads if thread.takes_caps}
            found[workload] = Limits(around_ppm, *use, own)
        return found

    def _limit(self, workload: str, home: str, threads: Sequence[ManagedThread]) -> Limited | None:
        if self._hierarchy is None:
            return None
        tightest = cgroupfs.tightest_quota(self._hierarchy, home)
        if tightest is None:
            return None
        group, cores = tightest
        return Limited(workload, int(cores * CORE_PPM), self._hierarchy.directory(group), threads)

    def _can_be_capped(self, thread: ManagedThread) -> bool:
        """Is there a group for it alone that nobody else gave a quota?"""
        place = thread.weight
        if place is None or self._hierarchy is None or not thread.takes_caps:
            return False
        if not place.made or NativeKnob.QUOTA in thread.held:
            return True
        try:
            quota = bandwidth.read_quota(bandwidth.quota_file(self._hierarchy, place.group))
        except (ThreadGone, OSError):
            return False
        return quota.startswith(bandwidth.NO_QUOTA)


def _own(thread: ManagedThread) -> OwnLimit:
    held = thread.held.get(NativeKnob.QUOTA)
    if held is None or not isinstance(held.value, int):
        return OwnLimit(0, 0)
    try:
        return OwnLimit(held.value, bandwidth.usage_of(os.path.dirname(held.ref.path)).throttled_ns)
    except (ThreadGone, OSError):
        return OwnLimit(held.value, 0)
