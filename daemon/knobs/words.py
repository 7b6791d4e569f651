"""What our sched_ext scheduler is told of a thread. Nothing of it outlives that scheduler."""

from __future__ import annotations

from ..linux import extwords
from ..model import Knob, KnobValue
from .knob import KnobRef, NativeKnob, NativeValue, clamped, no_value


class WordKnob(NativeKnob):
    """A number, or `extwords.DEFAULT`, a value of its own. `number`: which one of a thread's word."""

    def __init__(self, name: str, serves: Knob, number: int, bounds: tuple[int, int]) -> None:
        super().__init__(name)
        self.serves = serves
        self.number = number
        self._bounds = bounds

    def read(self, ref: KnobRef, proc: str) -> NativeValue:
        """See NativeKnob."""
        return extwords.read(ref.vcpu.tid, self.number)

    def write(self, ref: KnobRef, value: NativeValue, proc: str, descriptor: int | None = None) -> None:
        """See NativeKnob."""
        if not isinstance(value, int) and value != extwords.DEFAULT:
            raise no_value(self, value)
        extwords.write(ref.vcpu.tid, self.number, value)

    def native(self, value: KnobValue) -> NativeValue:
        """See NativeKnob."""
        return clamped(value, self._bounds)

    def model(self, value: NativeValue) -> KnobValue:
        """See NativeKnob."""
        assert isinstance(value, int), "a number that somebody has set"
        return value


EXT_WEIGHT = WordKnob("ext_weight", Knob.WEIGHT, extwords.WEIGHT, extwords.WEIGHT_RANGE)
EXT_LATENCY = WordKnob("ext_latency", Knob.RESCHEDULING_LATENCY, extwords.LATENCY, extwords.LATENCY_RANGE_NS)
