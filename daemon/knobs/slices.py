"""EEVDF's slice of a thread: how long its requests are, and so who preempts whom when it wakes up."""

from __future__ import annotations

from functools import cache

from ..linux import schedattr
from ..model import Knob, KnobValue
from .knob import KnobRef, NativeKnob, NativeValue, clamped, no_value

RANGE_NS = (100_000, 100_000_000)
"""What the kernel cuts slices to (kernel/sched/syscalls.c, __sched_setscheduler())."""


class Slice(NativeKnob):
    """0 is the kernel's default."""

    serves = Knob.RESCHEDULING_LATENCY
    unset = 0
    inherited = in_task = fair_only = glances = True

    def read(self, ref: KnobRef, proc: str) -> NativeValue:
        """See NativeKnob. Raises NotFair where the kernel does not show it."""
        return schedattr.shown_slice(ref.vcpu.tid)

    def write(self, ref: KnobRef, value: NativeValue, proc: str, descriptor: int | None = None) -> None:
        """See NativeKnob."""
        if not isinstance(value, int):
            raise no_value(self, value)
        schedattr.set_slice(ref.vcpu.tid, value)

    def give_back(self, ref: KnobRef, prior: NativeValue, proc: str) -> None:
        """See NativeKnob. A thread that has turned idle gets it, too. Raises NotFair."""
        if not isinstance(prior, int):
            raise no_value(self, prior)
        schedattr.give_slice_back(ref.vcpu.tid, prior)

    def native(self, value: KnobValue) -> NativeValue:
        """See NativeKnob."""
        return clamped(value, RANGE_NS)

    def model(self, value: NativeValue) -> KnobValue:
        """See NativeKnob."""
        assert isinstance(value, int), "nanoseconds"
        return value

    def in_force(self, ref: KnobRef, value: NativeValue, proc: str) -> NativeValue:
        """See NativeKnob."""
        return default_slice_ns() if value == self.unset else value

    def shown(self, value: NativeValue) -> object:
        """See NativeKnob."""
        return value

    def glance(self, tid: int) -> object:
        """See NativeKnob."""
        return schedattr.slice_of(tid)


@cache
def default_slice_ns() -> int:
    """The kernel's default slice, asked for once."""
    return schedattr.default_slice_ns()


SLICE = Slice("slice")
