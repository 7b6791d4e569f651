"""How much of its quota a group may save up, in microseconds. Not the model's: no policy decides it."""

from __future__ import annotations

from ..linux import bandwidth
from ..linux.cgroupfs import Hierarchy
from .groups import GroupKnob
from .knob import NativeValue, no_value


class Burst(GroupKnob):
    """0 is none. It goes back before the quota does, which may not be less."""

    def read_file(self, path: str) -> NativeValue:
        """See GroupKnob."""
        return bandwidth.read_burst(path)

    def write_file(self, path: str, value: NativeValue) -> None:
        """See GroupKnob."""
        if not isinstance(value, int):
            raise no_value(self, value)
        bandwidth.write_burst(path, value)

    def file_of(self, hierarchy: Hierarchy, group: str) -> str:
        """See GroupKnob."""
        return bandwidth.burst_file(bandwidth.quota_file(hierarchy, group))


BURST = Burst("burst")
