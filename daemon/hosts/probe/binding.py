"""Which CPU limits of this host stop threads now: looked at twice, a second apart."""

from __future__ import annotations

import time
from typing import NamedTuple

from ...linux import bandwidth, cgroupfs
from ...linux.bandwidth import GroupUse
from ...linux.cgroupfs import Hierarchy
from ...linux.errors import HierarchyMissing, ThreadGone

LOOK_S = 1.0
"""Ten periods of a limit at the kernel's default."""

MOST = 5
"""Of the limits that bind, those that cost most are told."""


class Binding(NamedTuple):
    """A group, its limit in cores, the part of a second for which its threads were stopped, over all CPUs, in
    how many of its periods, and what it used in cores (None: this hierarchy does not count it)."""

    group: str
    cores: float
    stopped: float
    stopped_periods: int
    periods: int
    used: float | None


def binding_limits() -> tuple[Binding, ...]:
    """Those that stop threads, the worst first."""
    try:
        hierarchy = cgroupfs.find_hierarchy()
    except HierarchyMissing:
        return ()
    limited = [
        (group, cores)
        for group in hierarchy.below(hierarchy.root).groups
        if (cores := cgroupfs.quota_at(hierarchy, group)) is not None
    ]
    if not limited:
        return ()
    before = {group: _use(hierarchy, group) for group, _ in limited}
    time.sleep(LOOK_S)
    found = [
        _binding(group, cores, then, now)
        for group, cores in limited
        if (then := before[group]) and (now := _use(hierarchy, group))
    ]
    return tuple(sorted((one for one in found if one.stopped > 0), key=lambda one: -one.stopped)[:MOST])


def _binding(group: str, cores: float, then: GroupUse, now: GroupUse) -> Binding:
    look_ns = LOOK_S * 1e9
    return Binding(
        group,
        cores,
        (now.throttled_ns - then.throttled_ns) / look_ns,
        now.stopped_periods - then.stopped_periods,
        now.periods - then.periods,
        (now.used_ns - then.used_ns) / look_ns if now.used_ns else None,
    )


def _use(hierarchy: Hierarchy, group: str) -> GroupUse | None:
    try:
        return bandwidth.usage_of(hierarchy.directory(group))
    except (ThreadGone, OSError):
        return None
