"""The weight of the group that a thread is alone in."""

from __future__ import annotations

import os

from ..linux import cgroupfs
from ..linux.cgroupfs import Hierarchy
from ..model import NEUTRAL_WEIGHT, Knob, KnobValue
from .groups import GroupKnob
from .knob import KnobRef, NativeValue, clamped, no_value

V2_NEUTRAL = 100
"""cpu.weight of "like everybody else" (kernel's cgroup-v2 documentation); 1024 on v1."""

V1_RANGE = (2, 262_144)
V2_RANGE = (1, 10_000)
"""What the kernel cuts weights to."""

NICE_STEP = 1.25
"""One step of nice (kernel/sched/core.c: sched_prio_to_weight, which is this within 1 %)."""


class GroupWeight(GroupKnob):
    """`neutral`: what the kernel has where the model has NEUTRAL_WEIGHT. v2's are coarser: several values of
    the model share one."""

    serves = Knob.WEIGHT

    def __init__(self, name: str, neutral: int, bounds: tuple[int, int]) -> None:
        super().__init__(name)
        self._neutral = neutral
        self._bounds = bounds

    def read_file(self, path: str) -> NativeValue:
        """See GroupKnob."""
        return cgroupfs.read_weight(path)

    def write(self, ref: KnobRef, value: NativeValue, proc: str, descriptor: int | None = None) -> None:
        """See NativeKnob. A kept descriptor is that of the group that it was opened in."""
        if descriptor is None or not isinstance(value, int):
            super().write(ref, value, proc)
        else:
            os.pwrite(descriptor, str(value).encode(), 0)  # a sixth of the cost

    def write_file(self, path: str, value: NativeValue) -> None:
        """See GroupKnob."""
        if not isinstance(value, int):
            raise no_value(self, value)
        cgroupfs.write_weight(path, value)

    def file_of(self, hierarchy: Hierarchy, group: str) -> str:
        """See GroupKnob."""
        return hierarchy.weight_file(group)

    def native(self, value: KnobValue) -> NativeValue:
        """See NativeKnob."""
        assert isinstance(value, int), "a weight"
        return clamped((value * self._neutral + NEUTRAL_WEIGHT // 2) // NEUTRAL_WEIGHT, self._bounds)

    def model(self, value: NativeValue) -> KnobValue:
        """See NativeKnob."""
        assert isinstance(value, int), "a weight"
        return (value * NEUTRAL_WEIGHT + self._neutral // 2) // self._neutral

    def taken(self, value: KnobValue) -> KnobValue:
        """See NativeKnob."""
        native = self.native(value)
        return self.model(native) if native in self._bounds else value


def weight_of_nice(nice: int) -> int:
    """The weight of a thread that has none of its own."""
    return round(NEUTRAL_WEIGHT / NICE_STEP**nice)


WEIGHT_V1 = GroupWeight("weight_v1", NEUTRAL_WEIGHT, V1_RANGE)
WEIGHT_V2 = GroupWeight("weight_v2", V2_NEUTRAL, V2_RANGE)


def group_weight(hierarchy: Hierarchy) -> GroupWeight:
    """The kind that this hierarchy's groups have."""
    return WEIGHT_V1 if hierarchy.version == 1 else WEIGHT_V2
