"""The two rules of the resource conflict resolver in order, and its memory of who was moved."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ..entitlement import Standing, split_ns
from ..model import Core, Knob, Period, Reason, Topology, VcpuId
from ..period import seat
from .latencies import separate
from .layout import Layout, Swap
from .parameters import RcrParameters
from .slices import balance

Moved = tuple[tuple[VcpuId, int], ...]
"""Who was moved, and in which period (its index)."""


class Resolution(NamedTuple):
    """The new core of every vCPU that is swapped, why, and who was moved lately."""

    pins: dict[VcpuId, Core]
    reasons: list[Reason]
    moved: Moved


def resolve(
    period: Period,
    standings: Sequence[Standing],
    weights: Mapping[VcpuId, int],
    latencies_ns: Mapping[VcpuId, int],
    moved: Moved,
    parameters: RcrParameters,
) -> Resolution:
    """Swaps for slices, then for latencies; `weights` and `latencies_ns` are what TSA and RLA changed."""
    known = [(vcpu, index) for vcpu, index in moved if vcpu in period.knobs]
    resting = {vcpu for vcpu, index in known if period.index - index <= parameters.cooldown_periods}
    pins = {vcpu: core for vcpu, _ in known if (core := seat(period, vcpu)) is not None}
    slices = [_slices_after(period, standing, weights) for standing in standings]
    layout = Layout(standings, slices, latencies_ns, pins, resting, period.topology)
    reaches = _reaches(period.topology, parameters)
    for reach in reaches:
        balance(layout, reach, parameters)
    separate(layout, standings, reaches, parameters)
    away = [
        (vcpu, index)
        for vcpu, index in known
        if vcpu in resting or pins.get(vcpu) != period.core_of.get(vcpu)
    ]
    return _resolution(layout.swaps, away, period.index)


def _slices_after(period: Period, standing: Standing, weights: Mapping[VcpuId, int]) -> Sequence[int]:
    """The slices under the weights after TSA, in the rows of the standing."""
    if not weights or weights.keys().isdisjoint(standing.ids):
        return standing.slices_ns
    new = [weights.get(vcpu, knobs.weight) for vcpu, knobs in zip(standing.ids, standing.knobs, strict=True)]
    return split_ns(standing.entitlement_ns, new, period.length_ns)


def _reaches(topology: Topology, parameters: RcrParameters) -> Sequence[Sequence[Core]]:
    """The sets of cores among which vCPUs may be moved: the NUMA nodes, or all cores at once; of these, those
    that do as much in a time. A swap of a slice for an equal one on a smaller core would be no swap."""
    is_one = parameters.across_nodes or len(set(map(topology.node_of.get, topology.cores))) == 1
    if is_one and not topology.capacity_of:
        return [topology.cores]
    alike: dict[tuple[int, int], list[Core]] = {}
    for core in topology.cores:
        node = 0 if parameters.across_nodes else topology.node_of[core]
        alike.setdefault((node, topology.capacity_of.get(core, 0)), []).append(core)
    return [alike[kind] for kind in sorted(alike)]


def _resolution(swaps: Sequence[Swap], known: Sequence[tuple[VcpuId, int]], index: int) -> Resolution:
    pins: dict[VcpuId, Core] = {}
    reasons: list[Reason] = []
    for swap in swaps:
        for each, target in ((swap.one, swap.one_to), (swap.other, swap.other_to)):
            pins[each.vcpu.id] = target
            reasons.append(Reason(each.vcpu.id, Knob.AFFINITY, swap.rule, swap.inputs))
    kept = [(vcpu, since) for vcpu, since in known if vcpu not in pins]
    return Resolution(pins, reasons, (*kept, *((vcpu, index) for vcpu in pins)))
