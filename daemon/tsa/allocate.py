"""The rule of the time-slice allocator, for one workload."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ..entitlement import Standing
from ..model import Knob, Reason, ThreadState, VcpuId
from .apportion import apportion
from .parameters import TsaParameters


class Allocation(NamedTuple):
    """The weights of one workload that should change, why, and their sum then."""

    weights: dict[VcpuId, int]
    reasons: list[Reason]
    total: int


_READY, _WEIGHT = ThreadState.READY, Knob.WEIGHT  # a global costs a tenth of looking a member up in its enum


def reweigh(standing: Standing, neutral: Mapping[VcpuId, int], parameters: TsaParameters) -> Allocation:
    """New weights for the vCPUs of one workload; those whose weight stays are left out. `neutral`: the weight
    that each had when it came."""
    hungry = _hungry(standing)
    rows = [row for row, knobs in enumerate(standing.knobs) if knobs.weight is not None]
    total = sum([neutral[standing.ids[row]] for row in rows])
    weights = [knobs.weight for knobs in standing.knobs if knobs.weight is not None]
    if len(hungry) in (0, len(rows)) and sum(weights) == total:
        return Allocation({}, [], total)
    ordered = sorted(zip(rows, weights, strict=True), key=lambda each: standing.ids[each[0]])
    rows, weights = [row for row, _ in ordered], [weight for _, weight in ordered]
    wanted = _divide(weights, total, [row in hungry for row in rows], parameters)
    scaled = (("total", total), ("hungry", len(hungry)))
    cores = len(set(standing.cores))
    changed: dict[VcpuId, int] = {}
    reasons: list[Reason] = []
    for row, weight, new in zip(rows, weights, wanted, strict=True):
        if new != weight:
            vcpu = standing.ids[row]
            changed[vcpu] = new
            rule, seen = (
                ("tsa.raise", _seen(standing, row, cores))
                if row in hungry and new > weight
                else ("tsa.scale", scaled)
            )
            reasons.append(tuple.__new__(Reason, (vcpu, _WEIGHT, rule, seen)))
    return Allocation(changed, reasons, total)


def _hungry(standing: Standing) -> set[int]:
    """Rows that exhausted their slice and are ready: preempted for lack of slice."""
    return {
        row
        for row in standing.exhausted
        if (used := standing.usage[row]) and used.state is _READY and standing.knobs[row].weight is not None
    }


def _divide(
    weights: Sequence[int], total: int, is_hungry: Sequence[bool], parameters: TsaParameters
) -> Sequence[int]:
    """The total, divided anew: the hungry a step up, the others scaled, all within the bounds."""
    count, span = len(weights), parameters.weight_span
    low = -(-total // (span * count))
    high = span * total // count
    if sum(weights) != total:
        weights = apportion(weights, total, low, high)
    if all(is_hungry) or not any(is_hungry):
        return weights
    grown = [
        min(max(_step_up(weight, parameters.step_percent), low), high)
        for weight, hungry in zip(weights, is_hungry, strict=True)
        if hungry
    ]
    others = [weight for weight, hungry in zip(weights, is_hungry, strict=True) if not hungry]
    rest = min(max(total - sum(grown), low * len(others)), high * len(others))
    if rest != total - sum(grown):
        grown = apportion(grown, total - rest, low, high)
    for_hungry, for_others = iter(grown), iter(apportion(others, rest, low, high))
    return [next(for_hungry) if hungry else next(for_others) for hungry in is_hungry]


def _step_up(weight: int, percent: int) -> int:
    """`weight` raised by `percent`, to the nearest whole number, half up."""
    return (weight * (100 + percent) + 50) // 100


def _seen(standing: Standing, row: int, cores: int) -> tuple[tuple[str, int], ...]:
    used = standing.usage[row]
    return (
        ("consumed_ns", used.consumed_ns if used else 0),
        ("slice_ns", standing.slices_ns[row]),
        ("cores", cores),
    )
