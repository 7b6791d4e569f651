"""Which CPU limits of this host stop threads now: looked at twice, a second apart."""

from __future__ import annotations

import time
from typing import NamedTuple

from ...linux import bandwidth, cgroupfs
from ...linux.cgroupfs import Hierarchy
from ...linux.errors import HierarchyMissing, ThreadGone

LOOK_S = 1.0
"""Ten periods of a limit at the kernel's default."""

MOST = 5
"""Of the limits that bind, those that cost most are told."""


class Binding(NamedTuple):
    """A group, its limit in cores, and the part of a second for which its threads were stopped, over all
    CPUs."""

    group: str
    cores: float
    stopped: float


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
    before = {group: _throttled_ns(hierarchy, group) for group, _ in limited}
    time.sleep(LOOK_S)
    found = [
        Binding(group, cores, (_throttled_ns(hierarchy, group) - before[group]) / (LOOK_S * 1e9))
        for group, cores in limited
    ]
    return tuple(sorted((one for one in found if one.stopped > 0), key=lambda one: -one.stopped)[:MOST])


def _throttled_ns(hierarchy: Hierarchy, group: str) -> int:
    try:
        return bandwidth.usage_of(hierarchy.directory(group)).throttled_ns
    except (ThreadGone, OSError):
        return 0
