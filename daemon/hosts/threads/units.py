"""The model's units and the kernel's, either way."""

from __future__ import annotations

from ...bandwidth.rates import cap_of
from ...linux import dasecfile, extwords
from ...linux.knob import NativeKnob, NativeValue
from ...model import NEUTRAL_WEIGHT, Core, Knob, KnobValue

V2_NEUTRAL = 100
"""cpu.weight of "like everybody else" (kernel's cgroup-v2 documentation); 1024 on v1."""

V1_RANGE = (2, 262_144)
V2_RANGE = (1, 10_000)
SLICE_RANGE_NS = (100_000, 100_000_000)
"""What the kernel cuts weights and slices to; a value beyond would not be read back as it was written."""

NICE_STEP = 1.25
"""One step of nice (kernel/sched/core.c: sched_prio_to_weight, which is this within 1 %)."""

MODEL_KNOB = {
    NativeKnob.WEIGHT_V1: Knob.WEIGHT,
    NativeKnob.WEIGHT_V2: Knob.WEIGHT,
    NativeKnob.SLICE: Knob.RESCHEDULING_LATENCY,
    NativeKnob.AFFINITY: Knob.AFFINITY,
    NativeKnob.GRANULARITY: Knob.RESCHEDULING_LATENCY,
    NativeKnob.THREAD_WEIGHT: Knob.WEIGHT,
    NativeKnob.EXT_WEIGHT: Knob.WEIGHT,
    NativeKnob.EXT_LATENCY: Knob.RESCHEDULING_LATENCY,
}

_RANGES = {
    NativeKnob.WEIGHT_V1: V1_RANGE,
    NativeKnob.SLICE: SLICE_RANGE_NS,
    NativeKnob.GRANULARITY: dasecfile.GRANULARITY_RANGE_NS,
    NativeKnob.THREAD_WEIGHT: dasecfile.WEIGHT_RANGE,
    NativeKnob.EXT_WEIGHT: extwords.WEIGHT_RANGE,
    NativeKnob.EXT_LATENCY: extwords.LATENCY_RANGE_NS,
}


def native(kind: NativeKnob, value: KnobValue) -> NativeValue:
    """A model value as the kernel takes it."""
    if not isinstance(value, int):
        return tuple(sorted(value))
    if kind is NativeKnob.QUOTA:
        return "{} {}".format(*cap_of(value))
    if kind is NativeKnob.WEIGHT_V2:
        return _clamp((value * V2_NEUTRAL + NEUTRAL_WEIGHT // 2) // NEUTRAL_WEIGHT, V2_RANGE)
    return _clamp(value, _RANGES[kind])


def model(kind: NativeKnob, value: NativeValue) -> KnobValue:
    """A kernel value as the model has it. v2 weights are coarser: several model values share one."""
    if isinstance(value, tuple):
        return frozenset(Core(cpu) for cpu in value)
    assert isinstance(value, int), f"{kind} has no place in the model"
    if kind is NativeKnob.WEIGHT_V2:
        return (value * NEUTRAL_WEIGHT + V2_NEUTRAL // 2) // V2_NEUTRAL
    return value


def weight_of_nice(nice: int) -> int:
    """The weight of a thread that has none of its own."""
    return round(NEUTRAL_WEIGHT / NICE_STEP**nice)


def _clamp(value: int, bounds: tuple[int, int]) -> int:
    return max(bounds[0], min(bounds[1], value))
