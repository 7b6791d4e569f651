"""The real-time priority of a thread of the kernel: it runs before all that are not real-time.

Only our scheduler's host has a use for it, for the thread of RCU (docs/decisions/0081-rcu-first.md).
"""

from __future__ import annotations

import errno
import os
import time

from ..linux import sched_ext
from .knob import KnobRef, NativeKnob, NativeValue, no_value

ORDINARY = 0

_LOOKS = 500
_LOOK_EVERY_S = 0.02
"""The end of our scheduler took 2 s at most where it came at all (docs/decisions/0076-hotplug.md)."""


class RealTimePriority(NativeKnob):
    """ORDINARY, or a priority of SCHED_FIFO; another policy reads as its number below zero. Nice and slice
    stay (`_sched_setscheduler()` of kernel/sched hands them on)."""

    def read(self, ref: KnobRef, proc: str) -> NativeValue:
        """See NativeKnob."""
        tid = ref.vcpu.tid
        policy = os.sched_getscheduler(tid) & ~os.SCHED_RESET_ON_FORK
        if policy == os.SCHED_FIFO:
            return os.sched_getparam(tid).sched_priority
        return ORDINARY if policy == os.SCHED_OTHER else -policy

    def write(self, ref: KnobRef, value: NativeValue, proc: str, descriptor: int | None = None) -> None:
        """See NativeKnob."""
        if not isinstance(value, int) or value < ORDINARY:
            raise no_value(self, value)
        policy = os.SCHED_OTHER if value == ORDINARY else os.SCHED_FIFO
        os.sched_setscheduler(ref.vcpu.tid, policy, os.sched_param(value))

    def give_back(self, ref: KnobRef, prior: NativeValue, proc: str) -> None:
        """See NativeKnob. Not before our scheduler has gone: whose process was killed may still be on its
        way out. Raises OSError (EBUSY) where it stays."""
        for _ in range(_LOOKS):
            if sched_ext.name() != sched_ext.OURS:
                self.write(ref, prior, proc)
                return
            time.sleep(_LOOK_EVERY_S)
        raise OSError(errno.EBUSY, "our scheduler still has this host: stop it first")


REAL_TIME = RealTimePriority("realtime")
