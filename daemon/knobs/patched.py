"""What our kernel patch adds to each thread, in its process's dasec file. A child has the default."""

from __future__ import annotations

from ..linux import dasecfile
from ..model import Knob, KnobValue
from .knob import KnobRef, NativeKnob, NativeValue, clamped, no_value


class PatchKnob(NativeKnob):
    """A number, or `dasecfile.DEFAULT`, a value of its own. `key`: what the file calls it."""

    def __init__(self, name: str, serves: Knob, key: str, bounds: tuple[int, int]) -> None:
        super().__init__(name)
        self.serves = serves
        self.key = key
        self._bounds = bounds

    def read(self, ref: KnobRef, proc: str) -> NativeValue:
        """See NativeKnob."""
        return dasecfile.read_knob(ref.vcpu.pid, ref.vcpu.tid, self.key, proc)

    def write(self, ref: KnobRef, value: NativeValue, proc: str, descriptor: int | None = None) -> None:
        """See NativeKnob."""
        if not isinstance(value, int) and value != dasecfile.DEFAULT:
            raise no_value(self, value)
        dasecfile.write_knob(ref.vcpu.pid, ref.vcpu.tid, self.key, value, proc)

    def native(self, value: KnobValue) -> NativeValue:
        """See NativeKnob."""
        return clamped(value, self._bounds)

    def model(self, value: NativeValue) -> KnobValue:
        """See NativeKnob."""
        assert isinstance(value, int), "a number that somebody has set"
        return value

    def shown(self, value: NativeValue) -> object:
        """See NativeKnob: its word in the thread's line."""
        return str(value).encode()


GRANULARITY = PatchKnob(
    "granularity", Knob.RESCHEDULING_LATENCY, dasecfile.GRANULARITY, dasecfile.GRANULARITY_RANGE_NS
)
THREAD_WEIGHT = PatchKnob("thread_weight", Knob.WEIGHT, dasecfile.WEIGHT, dasecfile.WEIGHT_RANGE)
