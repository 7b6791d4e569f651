"""nice of a thread: its weight among those that share its group, in steps of a quarter.

Inside a group threads compete by it alone, so it divides what the group has and takes nothing from other
groups (docs/decisions/0077-nice-inside-a-group.md).
"""

from __future__ import annotations

import math

from ..linux import schedattr
from ..model import NEUTRAL_WEIGHT, Knob, KnobValue
from .knob import KnobRef, NativeKnob, NativeValue, clamped, no_value
from .weights import NICE_STEP, weight_of_nice

RANGE = (-20, 19)


class Nice(NativeKnob):
    """By setpriority(2), which on Linux is of a thread, and holds whatever its policy is."""

    serves = Knob.WEIGHT
    inherited = in_task = glances = True

    def read(self, ref: KnobRef, proc: str) -> NativeValue:
        """See NativeKnob."""
        return schedattr.nice_of(ref.vcpu.tid)

    def write(self, ref: KnobRef, value: NativeValue, proc: str, descriptor: int | None = None) -> None:
        """See NativeKnob."""
        if not isinstance(value, int):
            raise no_value(self, value)
        schedattr.set_nice(ref.vcpu.tid, value)

    def native(self, value: KnobValue) -> NativeValue:
        """See NativeKnob: the nearest step."""
        assert isinstance(value, int), "a weight"
        return clamped(round(math.log(NEUTRAL_WEIGHT / max(1, value), NICE_STEP)), RANGE)

    def model(self, value: NativeValue) -> KnobValue:
        """See NativeKnob."""
        assert isinstance(value, int), "a number"
        return weight_of_nice(value)

    def taken(self, value: KnobValue) -> KnobValue:
        """See NativeKnob."""
        native = self.native(value)
        return self.model(native) if native in RANGE else value

    def shown(self, value: NativeValue) -> object:
        """See NativeKnob."""
        return value

    def glance(self, tid: int) -> object:
        """See NativeKnob."""
        try:
            return schedattr.nice_of(tid)
        except OSError:
            return None


NICE = Nice("nice")
