"""The rule of the time-slice allocator, for one workload."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..entitlement import Standing
from ..model import Knob, Reason, ThreadState, VcpuId
from .apportion import apportion
from .parameters import TsaParameters


class Allocation(NamedTuple):
    """The weights of one workload that should change, and why."""

    weights: dict[VcpuId, int]
    reasons: list[Reason]


NOTHING = Allocation({}, [])

_READY, _WEIGHT = ThreadState.READY, Knob.WEIGHT  # a global costs a tenth of looking a member up in its enum


def reweigh(standing: Standing, parameters: TsaParameters) -> Allocation:
    """New weights for the vCPUs of one workload; those whose weight stays are left out."""
    hungry = _hungry(standing)
    if not hungry:
        return NOTHING
    weight_of = [knobs.weight for knobs in standing.knobs]
    rows = [row for row, weight in enumerate(weight_of) if weight is not None]
    if len(hungry) == len(rows):
        return NOTHING
    rows.sort(key=standing.ids.__getitem__)
    weights = [weight for row in rows if (weight := weight_of[row]) is not None]
    wanted = _divide(weights, [row in hungry for row in rows], parameters)
    scaled = (("total", sum(weights)), ("hungry", len(hungry)))
    cores = len(set(standing.cores))
    changed: dict[VcpuId, int] = {}
    reasons: list[Reason] = []
    for row, weight, new in zip(rows, weights, wanted, strict=True):
        if new != weight:
            vcpu = standing.ids[row]
            changed[vcpu] = new
            rule, seen = (
                ("tsa.raise", _seen(standing, row, cores)) if row in hungry else ("tsa.scale", scaled)
            )
            reasons.append(tuple.__new__(Reason, (vcpu, _WEIGHT, rule, seen)))
    return Allocation(changed, reasons)


def _hungry(standing: Standing) -> set[int]:
    """Rows that exhausted their slice and are ready: preempted for lack of slice."""
    return {
        row
        for row in standing.exhausted
        if (used := standing.usage[row]) and used.state is _READY and standing.knobs[row].weight is not None
    }


def _divide(weights: Sequence[int], is_hungry: Sequence[bool], parameters: TsaParameters) -> list[int]:
    """The same sum, divided anew: the hungry a step up, the others scaled, all within the bounds."""
    total, count, span = sum(weights), len(weights), parameters.weight_span
    low = -(-total // (span * count))
    high = span * total // count
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
