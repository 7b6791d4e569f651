"""The scheduling policy of a thread. By SCHED_EXT it is a sched_ext scheduler's, where one is loaded that has
such threads only (docs/sched-ext.md#partial-mode)."""

from __future__ import annotations

from ..linux import schedattr
from .knob import KnobRef, NativeKnob, NativeValue, no_value
from .slices import default_slice_ns


class SchedulingPolicy(NativeKnob):
    """The kernel's number. Nice, reset-on-fork and slice stay as they are."""

    inherited = in_task = True

    def read(self, ref: KnobRef, proc: str) -> NativeValue:
        """See NativeKnob."""
        return schedattr.policy_of(ref.vcpu.tid)

    def write(self, ref: KnobRef, value: NativeValue, proc: str, descriptor: int | None = None) -> None:
        """See NativeKnob. Raises NotFair for a thread that is real-time or idle by now."""
        if not isinstance(value, int):
            raise no_value(self, value)
        schedattr.change_policy(ref.vcpu.tid, value, default_slice_ns())


POLICY = SchedulingPolicy("policy")
