"""The rules of the rescheduling latency adjuster that look at one vCPU: start, cut, raise."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import chain
from typing import NamedTuple

from ..entitlement import Standing
from ..model import Knob, Reason, ThreadState, Usage, VcpuId
from .parameters import RlaParameters
from .sources import parts_of_sources
from .steps import WHOLE, limit_ns, lowered_ns, raised_ns

# A global costs a tenth of looking a member up in its enum.
_ASLEEP, _UNKNOWN = ThreadState.IDLE, ThreadState.UNKNOWN
_LATENCY = Knob.RESCHEDULING_LATENCY


class Adjustment(NamedTuple):
    """The latencies (ns) that should change, why, and which vCPUs RLA has seen by now."""

    latencies_ns: dict[VcpuId, int]
    reasons: list[Reason]
    started: tuple[VcpuId, ...]


def adjust(
    standings: Sequence[Standing], started: tuple[VcpuId, ...], parameters: RlaParameters
) -> Adjustment:
    """New latencies for all vCPUs, given those that were seen before; unchanged ones are left out."""
    present = tuple(chain.from_iterable([standing.ids for standing in standings]))
    new = frozenset() if present == started else frozenset(present).difference(started)
    latencies_ns: dict[VcpuId, int] = {}
    reasons: dict[VcpuId, Reason] = {}
    for standing in standings:
        if new:
            _start(standing, new, parameters, latencies_ns, reasons)
        stuck = _judge(standing, new, parameters, latencies_ns, reasons)
        if stuck:
            _cut_sources(standing, stuck, new, parameters, latencies_ns, reasons)
    return Adjustment(latencies_ns, list(reasons.values()), present)


def _start(
    standing: Standing,
    new: Collection[VcpuId],
    parameters: RlaParameters,
    latencies_ns: dict[VcpuId, int],
    reasons: dict[VcpuId, Reason],
) -> None:
    for vcpu, knobs in zip(standing.ids, standing.knobs, strict=True):
        latency_ns = knobs.rescheduling_latency_ns
        if vcpu in new and latency_ns is not None and latency_ns != parameters.start_ns:
            latencies_ns[vcpu] = parameters.start_ns
            seen = (("latency_ns", latency_ns),)
            reasons[vcpu] = Reason(vcpu, _LATENCY, "rla.start", seen)


def _judge(
    standing: Standing,
    new: Collection[VcpuId],
    parameters: RlaParameters,
    latencies_ns: dict[VcpuId, int],
    reasons: dict[VcpuId, Reason],
) -> list[Usage]:
    """Cuts and raises; returns the usage of those that wanted a cut and are as low as they may be."""
    stuck: list[Usage] = []
    for row in standing.active:
        used = standing.usage[row]
        asleep = used is not None and used.state is _ASLEEP
        if used is None or (row in standing.exhausted) is not asleep or used.state is _UNKNOWN:
            continue
        vcpu, latency_ns = standing.ids[row], standing.knobs[row].rescheduling_latency_ns
        if latency_ns is None or vcpu in new:
            continue
        if asleep:
            wanted_ns, rule = raised_ns(latency_ns, parameters), "rla.raise"
        else:
            lowest_ns = limit_ns(used, parameters)
            wanted_ns, rule = lowered_ns(latency_ns, WHOLE, lowest_ns, parameters), "rla.cut"
            if latency_ns <= lowest_ns:
                stuck.append(used)
        if wanted_ns != latency_ns:
            latencies_ns[vcpu] = wanted_ns
            reasons[vcpu] = _reason(standing, row, used, rule)
    return stuck


def _reason(standing: Standing, row: int, used: Usage, rule: str) -> Reason:
    seen = (
        ("consumed_ns", used.consumed_ns),
        ("slice_ns", standing.slices_ns[row]),
        ("dispatches", used.dispatches),
    )
    # Like Reason(...), without the Python code of a named tuple's constructor (decision 0003).
    return tuple.__new__(Reason, (standing.ids[row], _LATENCY, rule, seen))


def _cut_sources(
    standing: Standing,
    stuck: Sequence[Usage],
    new: Collection[VcpuId],
    parameters: RlaParameters,
    latencies_ns: dict[VcpuId, int],
    reasons: dict[VcpuId, Reason],
) -> None:
    """The third rule. A source that was cut already has had its step; one that was raised is cut instead."""
    parts = parts_of_sources(stuck)
    for row, vcpu in enumerate(standing.ids):
        part, used = parts.get(vcpu), standing.usage[row]
        latency_ns = standing.knobs[row].rescheduling_latency_ns
        if part is None or used is None or latency_ns is None or vcpu in new:
            continue
        if vcpu in reasons and reasons[vcpu].rule == "rla.cut":
            continue
        lower_ns = lowered_ns(latency_ns, part, limit_ns(used, parameters), parameters)
        latencies_ns.pop(vcpu, None)
        reasons.pop(vcpu, None)
        if lower_ns != latency_ns:
            latencies_ns[vcpu] = lower_ns
            seen = (("latency_ns", latency_ns), ("part_ppm", part))
            reasons[vcpu] = Reason(vcpu, _LATENCY, "rla.source", seen)
