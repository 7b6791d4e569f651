"""What a thread's granularity comes to while nobody has set it: the sysctl's."""

from __future__ import annotations

from ...linux import cpus, procfs
from ...linux.errors import ThreadGone

BASE_GRANULARITY_NS = 1_000_000
"""kernel/sched/fair.c: sysctl_sched_wakeup_granularity of Linux 6.1, on one CPU."""

MOST_CPUS_THAT_COUNT = 8
"""kernel/sched/fair.c: get_update_sysctl_factor() multiplies by 1 + log2 of the CPUs, at most so many."""


def granularity_ns(sysfs: str = cpus.SYSFS) -> int:
    """The wake-up granularity of threads that have none of their own."""
    try:
        return int(procfs.read_bytes(f"{sysfs}/kernel/debug/sched/wakeup_granularity_ns"))
    except (ThreadGone, OSError, ValueError):
        counted = min(len(cpus.online(sysfs)), MOST_CPUS_THAT_COUNT)
        return BASE_GRANULARITY_NS * max(1, counted).bit_length()
