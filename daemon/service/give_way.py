"""The daemon lets others go first when they wake up, at the same share of the CPU."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from ..linux import schedattr

SLICE_NS = 10_000_000
"""Longer than any kernel's default (3 ms at most), so that who wakes up takes the core from us; no longer,
since on a full core it is what we may have to wait for (docs/measurements.md, "Giving way")."""


@contextmanager
def giving_way() -> Iterator[None]:
    """This thread, and those that it starts, until the end of the block. A thread that somebody has given
    another policy keeps it, and where the kernel refuses nothing changes.

    SCHED_BATCH: takes nobody's core by waking up (check_preempt_wakeup_fair() in kernel/sched/fair.c). The
    slice: whoever asked for a shorter one takes ours (do_preempt_short(), Linux 6.12, 85e511df3cec).
    """
    own = threading.get_native_id()
    before = schedattr.get(own)
    if before.policy == schedattr.SCHED_OTHER:
        with suppress(OSError):
            schedattr.put(own, schedattr.SCHED_BATCH, SLICE_NS)
    try:
        yield
    finally:
        if before.policy == schedattr.SCHED_OTHER:
            with suppress(OSError):
                schedattr.put(own, before.policy, before.slice_ns)
