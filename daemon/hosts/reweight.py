"""Does this kernel survive weight changes? A short storm of them on two spinning children of ours.

Kernels from 6.13 (commit 6d71a9c61604) until its revert in 6.18.45 place a re-weighted
entity wrongly; a storm of reweights starved runnable tasks for seconds. The version says
who may be affected, not who is: distributions backport both. So we try. On 6.18.44 one of
two equal hogs gets 8 to 25 times the other's time in a storm, and its fair share when the
weight changes once a period (docs/measurements.md).
"""

from __future__ import annotations

import os
import time
from typing import NamedTuple

from ..linux import cgroupfs, procfs
from ..linux.cgroupfs import Hierarchy
from ..linux.errors import ThreadGone
from .dummy import spinner

STORM_S = 0.3

_MOST_BURSTS = 100_000
"""16 writes each, 1 us a write at the very least: more than fit into the time."""

STARVED_S = 0.1
"""Beside one other hog a hog waits for less than one slice and one tick: 12 ms at HZ=100."""

UNFAIR = 2.0
"""Two hogs, one at weight 1024, one swinging evenly between half and double of it: each gets
about as much as the other."""


class Storm(NamedTuple):
    """What the two spinning children got: CPU time of each, and the longest wait of either."""

    still_ns: int
    swung_ns: int
    longest_wait_ns: int

    @property
    def wrong(self) -> str | None:
        """What went wrong, or None."""
        if self.longest_wait_ns > STARVED_S * 1e9:
            return f"a runnable thread got no CPU for {self.longest_wait_ns / 1e6:.0f} ms"
        least, most = sorted((self.still_ns, self.swung_ns))
        if most > UNFAIR * max(1, least):
            return f"of two equal threads one got {most / max(1, least):.1f} times the other's CPU time"
        return None


def try_storm(hierarchy: Hierarchy, parent: str, cpu: int) -> Storm:
    """Two children in groups of their own on one CPU; one's weight changes all the time. Raises OSError."""
    groups = [f"{parent.rstrip('/')}/dasec-storm-{os.getpid()}-{which}" for which in ("still", "swung")]
    made: list[str] = []
    try:
        for group in groups:
            os.mkdir(hierarchy.directory(group))
            made.append(group)
        with spinner(cpu) as still, spinner(cpu) as swung:
            _enter(hierarchy, groups[0], still)
            _enter(hierarchy, groups[1], swung)
            return _storm(hierarchy, groups[1], still, swung)
    except ThreadGone as error:
        raise OSError(f"a child ended early: {error}") from error
    finally:
        for group in made:
            _remove(hierarchy.directory(group))


def _storm(hierarchy: Hierarchy, group: str, still: int, swung: int) -> Storm:
    low, high = (512, 2048) if hierarchy.version == 1 else (50, 200)
    descriptor = os.open(hierarchy.weight_file(group), os.O_RDWR | os.O_CLOEXEC)
    try:
        first = last = (_on_cpu_ns(still), _on_cpu_ns(swung))
        longest = 0
        begin = time.monotonic_ns()
        moved = [begin, begin]
        for _ in range(_MOST_BURSTS):
            now = time.monotonic_ns()
            if now > begin + STORM_S * 1e9:
                break
            for weight in (low, high) * 8:
                os.pwrite(descriptor, str(weight).encode(), 0)
            seen = (_on_cpu_ns(still), _on_cpu_ns(swung))
            for which in (0, 1):
                if seen[which] != last[which]:
                    moved[which] = now
                longest = max(longest, now - moved[which])
            last = seen
    finally:
        os.close(descriptor)
    return Storm(last[0] - first[0], last[1] - first[1], longest)


def _on_cpu_ns(pid: int) -> int:
    return procfs.parse_schedstat(procfs.read_bytes(f"{procfs.PROC}/{pid}/schedstat"))[0]


def _enter(hierarchy: Hierarchy, group: str, pid: int) -> None:
    """The whole process: a v2 group that is not threaded takes no single threads."""
    path = f"{hierarchy.directory(group)}/cgroup.procs"
    descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(descriptor, str(pid).encode())
    finally:
        os.close(descriptor)


def _remove(directory: str) -> None:
    """A child that was killed holds its group for a moment."""
    for _ in range(100):
        if cgroupfs.remove_group(directory):
            return
        time.sleep(0.01)
