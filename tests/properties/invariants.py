"""What must hold between a period and the knobs after it, whatever happened."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from dasec.model import Core, Decision, Knob, Knobs, Period, VcpuId, Workload
from dasec.period import seat
from dasec.plan import Plan
from dasec.policies import Parameters
from dasec.rla import RlaParameters

from ..builders import vcpu_id

SPAN = 8
NOBODY: Mapping[VcpuId, int] = MappingProxyType({})
PLACE = {Knob.WEIGHT: 0, Knob.RESCHEDULING_LATENCY: 1, Knob.AFFINITY: 2}


def after(period: Period, plan: Plan) -> Period:
    """The period with the knobs as they are once the plan is carried out."""
    knobs = dict(period.knobs)
    for change in plan.changes:
        there = knobs[change.vcpu]
        assert there[PLACE[change.knob]] == change.prior
        if isinstance(change.new, frozenset):
            assert change.knob is Knob.AFFINITY
            knobs[change.vcpu] = there._replace(affinity=change.new)
        elif change.knob is Knob.WEIGHT:
            knobs[change.vcpu] = there._replace(weight=change.new)
        else:
            knobs[change.vcpu] = there._replace(rescheduling_latency_ns=change.new)
    return replace(period, knobs=knobs)


def seats(period: Period) -> dict[VcpuId, Core | None]:
    return {vcpu: seat(period, vcpu) for vcpu in period.knobs}


def weights_after(weights: Sequence[int], plan: Plan) -> list[int]:
    """Those of the first workload of a table once the plan is carried out."""
    changes = (change for change in plan.changes if change.knob is Knob.WEIGHT)
    new = {change.vcpu: change.new for change in changes if isinstance(change.new, int)}
    return [new.get(vcpu_id(0, row), weight) for row, weight in enumerate(weights)]


def weights(workload: Workload, knobs: Mapping[VcpuId, Knobs]) -> dict[VcpuId, int]:
    found = {vcpu.id: knobs[vcpu.id].weight for vcpu in workload.vcpus if vcpu.id in knobs}
    return {vcpu: weight for vcpu, weight in found.items() if weight is not None}


def check_weights(before: Period, later: Period, came_with: Mapping[VcpuId, int] = NOBODY) -> None:
    """The sum of every workload stays, or is that of what its vCPUs came with; and weights that changed are
    within the bounds."""
    for workload in before.workloads:
        prior, new = weights(workload, before.knobs), weights(workload, later.knobs)
        assert sum(came_with.get(vcpu, weight) for vcpu, weight in prior.items()) == sum(new.values())
        for vcpu, weight in new.items():
            if weight != prior[vcpu]:
                mean = sum(new.values()) / len(new)
                assert mean / SPAN <= weight <= mean * SPAN


def check_latencies(before: Period, later: Period, parameters: Parameters) -> None:
    for vcpu, knobs in later.knobs.items():
        if knobs.rescheduling_latency_ns != before.knobs[vcpu].rescheduling_latency_ns:
            latency_ns = knobs.rescheduling_latency_ns
            assert latency_ns is not None
            assert (
                parameters.of(RlaParameters).floor_ns <= latency_ns <= parameters.of(RlaParameters).ceiling_ns
            )


def check_layout(before: Period, later: Period) -> None:
    """Swaps only: inside the allowed cores and the node, between physical cores that do as much in a time,
    and to no vCPU of the same workload that could be avoided."""
    prior, new = seats(before), seats(later)
    moved = {vcpu for vcpu in new if new[vcpu] != prior[vcpu]}
    assert Counter(prior.values()) == Counter(new.values())
    topology = before.topology
    kind_of = {core: (topology.node_of[core], topology.capacity_of.get(core)) for core in topology.cores}
    for workload in before.workloads:
        mine = {vcpu.id: vcpu for vcpu in workload.vcpus if vcpu.id in new}
        at_will = Counter[Core]()
        for vcpu in moved & mine.keys():
            core, origin = new[vcpu], prior[vcpu]
            assert core is not None
            assert origin is not None
            assert core in mine[vcpu].allowed
            assert kind_of[core] == kind_of[origin]
            assert not topology.are_siblings(core, origin)
            reach = {each for each in topology.cores if kind_of[each] == kind_of[core]}
            held = {seat for layout in (prior, new) for other in mine if (seat := layout[other]) is not None}
            has_sibling = any(new[other] == core for other in mine if other != vcpu)
            if has_sibling and (reach & mine[vcpu].allowed) - held:
                at_will[core] += 1
        for core, count in at_will.items():
            stays = any(prior[vcpu] == new[vcpu] == core for vcpu in mine)
            assert count <= (0 if stays else 1), "who came first was alone there, whoever had to follow"


def check_changes(before: Period, decision: Decision, plan: Plan) -> None:
    """Nobody who is not there, nothing twice, nothing without effect or reason, weights that fall first."""
    assert {change.vcpu for change in plan.changes} <= before.knobs.keys()
    assert len({(change.vcpu, change.knob) for change in plan.changes}) == len(plan.changes)
    assert all(change.prior != change.new for change in plan.changes)
    assert all(change.rule != "unexplained" for change in plan.changes)
    rises = [change.new > change.prior for change in plan.changes if change.knob is Knob.WEIGHT]  # type: ignore[operator]
    assert rises == sorted(rises)
    assert len({(reason.vcpu, reason.knob) for reason in decision.reasons}) == len(decision.reasons)


def check_all(
    before: Period,
    decision: Decision,
    plan: Plan,
    parameters: Parameters,
    came_with: Mapping[VcpuId, int] = NOBODY,
) -> Period:
    """All of the above for one period; returns it with the knobs after the plan."""
    check_changes(before, decision, plan)
    later = after(before, plan)
    check_weights(before, later, came_with)
    check_latencies(before, later, parameters)
    check_layout(before, later)
    return later
