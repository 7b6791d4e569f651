"""From wanted knobs to ordered writes: no-ops dropped, invariants checked, nothing half done.

**What is left out.** A vCPU that is not in the period (gone) or in no workload, a knob that is None on
either side (not ours, or no wish), a knob that has the wanted value already. So the plan for what is there
is empty.

**Order.** Weights that fall, then weights that rise, so that a workload's sum is never above what it was or
shall be, not even between two writes; then latencies; then affinities, with the two halves of a swap next to
each other; then caps, the small ones first, and last those that are taken away.

**Invariants.** They hold for every policy, and are checked again here, because a policy can be wrong:

- the sum of a workload's weights stays exactly as it was, or is exactly what the policy says that it was
  before anybody came or went, and a changed weight is within [1/8, 8] × the workload's mean;
- or, where the policy gives stakes: the sum of weight × demand is at most CREDIT_PERCENT above that of
  neutral weight × demand, and a changed weight is within [1/8, 8] × its neutral one;
- a latency is positive;
- an affinity is not empty, and within what the vCPU was allowed when we found it;
- a cap is of a vCPU of its own workload: none, or what a period of the kernel can hold and less than a core;
- quotas of a workload whose vCPUs were given some come to no more than was given.

A violation drops everything that was wanted for that workload, because a part of a decision is another
decision; it is reported, never applied. The other half of a swap with such a workload is dropped with it,
and reported.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import NamedTuple

from .bandwidth.rates import LEAST_PPM
from .model import (
    CORE_PPM,
    THREAD_KNOBS,
    Change,
    Core,
    Decision,
    Knob,
    Limits,
    Period,
    Stake,
    Vcpu,
    VcpuId,
    Workload,
    WorkloadKnobs,
)
from .period import column, seat
from .tsa import MAX_WEIGHT_SPAN

UNEXPLAINED = "unexplained"
"""The rule of a change for which the policy gave no reason."""

CREDIT_PERCENT = 40
"""A workload that had less weight than is neutral may have more for a while: a quarter, and at most a tenth
that weights may be off before they are written again (docs/decisions/0015-critical.md)."""

Rules = Mapping[VcpuId, str]

_WEIGHT, _LATENCY, _AFFINITY = THREAD_KNOBS  # a global costs a tenth of looking a member up in its enum


@dataclass(frozen=True, slots=True)
class Plan:
    """The writes in order, and what was wanted but must not be done (one line each)."""

    changes: tuple[Change, ...] = ()
    violations: tuple[str, ...] = ()


class Move(NamedTuple):
    """An affinity change, whose it is, and from which core to which (None: not to a single one)."""

    change: Change
    workload: str
    origin: Core | None
    target: Core | None


class Part(NamedTuple):
    """What is to be done for one workload, by kind, and what is wrong with it."""

    lowered: list[Change]
    raised: list[Change]
    latencies: list[Change]
    moves: list[Move]
    wrong: list[str]


class Caps(NamedTuple):
    """The caps that are wanted for one workload, and what is wrong with them."""

    changes: list[Change]
    wrong: list[str]


def plan(period: Period, decision: Decision) -> Plan:
    """The smallest list of writes that gives every vCPU of the period its wanted knobs."""
    if not decision.knobs and not decision.workloads:
        return Plan()
    rules: dict[Knob, dict[VcpuId, str]] = {knob: {} for knob in Knob}
    for vcpu, knob, rule, _ in decision.reasons:
        rules[knob][vcpu] = rule
    lowered: list[Change] = []
    raised: list[Change] = []
    latencies: list[Change] = []
    moves: list[Move] = []
    refused: set[str] = set()
    violations: list[str] = []
    caps = _caps(period, decision.workloads, rules[Knob.CAP]) if decision.workloads else {}
    for workload in period.workloads:
        part = _part(period, workload, decision, rules)
        moves += part.moves
        if workload.name in caps:
            part.wrong.extend(caps[workload.name].wrong)
        if part.wrong:
            refused.add(workload.name)
            violations += [f"workload {workload.name}: {complaint}" for complaint in part.wrong]
            continue
        lowered += part.lowered
        raised += part.raised
        latencies += part.latencies
    affinities = _affinities(_pairs(moves), refused, violations)
    capped = (change for name, wish in caps.items() if name not in refused for change in wish.changes)
    small_first = sorted(capped, key=lambda change: change.new or CORE_PPM)
    return Plan((*lowered, *raised, *latencies, *affinities, *small_first), tuple(violations))


def _part(period: Period, workload: Workload, decision: Decision, rules: Mapping[Knob, Rules]) -> Part:
    """The changes that are wanted for one workload: those that change something, and what they break."""
    part = Part([], [], [], [], [])
    wanted_of, present_of, new = decision.knobs, period.knobs, tuple.__new__
    weight_rules, latency_rules = rules[_WEIGHT], rules[_LATENCY]
    weights: list[int] = []
    gain = 0
    for vcpu in workload.vcpus:
        id_ = vcpu.id
        wanted = wanted_of.get(id_)
        present = present_of.get(id_) if wanted else None
        if not wanted or not present:
            continue
        weight, latency_ns, affinity = wanted
        had_weight, had_latency_ns, _ = present
        # new(Change, …) is Change(…) without the Python code of a named tuple's constructor (decision 0003).
        if weight is not None and had_weight is not None and weight != had_weight:
            gain += weight - had_weight
            weights.append(weight)
            change = new(Change, (id_, _WEIGHT, had_weight, weight, weight_rules.get(id_, UNEXPLAINED)))
            (part.lowered if weight < had_weight else part.raised).append(change)
        if latency_ns is not None and had_latency_ns is not None and latency_ns != had_latency_ns:
            rule = latency_rules.get(id_, UNEXPLAINED)
            part.latencies.append(new(Change, (id_, _LATENCY, had_latency_ns, latency_ns, rule)))
            if latency_ns <= 0:
                part.wrong.append(f"latency {latency_ns} ns of tid {id_.tid}: must be positive")
        if affinity is not None:
            _move(period, workload, vcpu, affinity, rules[_AFFINITY], part)
    if weights and not decision.stakes:
        part.wrong.extend(_wrong_weights(period, workload, weights, gain, decision.sums))
    elif weights:
        part.wrong.extend(_wrong_stakes(period, workload, decision))
    return part


def _move(
    period: Period, workload: Workload, vcpu: Vcpu, affinity: frozenset[Core], rules: Rules, part: Part
) -> None:
    had = period.knobs[vcpu.id].affinity
    if had is None or affinity == had:
        return
    if not affinity or not affinity <= vcpu.allowed:
        part.wrong.append(
            f"affinity {sorted(affinity)} of tid {vcpu.id.tid}: "
            f"must be one or more of its allowed CPUs {sorted(vcpu.allowed)}"
        )
    change = Change(vcpu.id, _AFFINITY, had, affinity, rules.get(vcpu.id, UNEXPLAINED))
    target = next(iter(affinity)) if len(affinity) == 1 else None
    part.moves.append(Move(change, workload.name, seat(period, vcpu.id), target))


def _wrong_weights(
    period: Period, workload: Workload, weights: Sequence[int], gain: int, sums: Mapping[str, int]
) -> Iterator[str]:
    """What is wrong with the new weights of a workload; `gain` is by how much they change its sum."""
    knobs_of = column(period.knobs, [vcpu.id for vcpu in workload.vcpus])
    ours = [knobs.weight for knobs in knobs_of if knobs and knobs.weight is not None]
    present, span = sum(ours), len(ours) * MAX_WEIGHT_SPAN
    total = sums.get(workload.name, present)
    if min(weights) * span < total or max(weights) * len(ours) > total * MAX_WEIGHT_SPAN:
        yield (
            f"weights {min(weights)} to {max(weights)}: must be within 1/{MAX_WEIGHT_SPAN} and "
            f"{MAX_WEIGHT_SPAN} times their mean of {total // len(ours)}"
        )
    if present + gain != total:
        yield f"weights that add up to {present + gain}: must stay {total}"


def _wrong_stakes(period: Period, workload: Workload, decision: Decision) -> Iterator[str]:
    """What is wrong with the new weights of a workload whose policy weighs them by demand."""
    neutral = wanted = 0
    for vcpu in workload.vcpus:
        present, wish = period.knobs.get(vcpu.id), decision.knobs.get(vcpu.id)
        if present is None or present.weight is None:
            continue
        stake = decision.stakes.get(vcpu.id, Stake(present.weight, 0))
        weight = present.weight if wish is None or wish.weight is None else wish.weight
        neutral += stake.neutral * stake.demand
        wanted += weight * stake.demand
        if weight != present.weight and not (
            stake.neutral <= weight * MAX_WEIGHT_SPAN and weight <= stake.neutral * MAX_WEIGHT_SPAN
        ):
            yield (
                f"weight {weight} of tid {vcpu.id.tid}: must be within 1/{MAX_WEIGHT_SPAN} and "
                f"{MAX_WEIGHT_SPAN} times its neutral weight of {stake.neutral}"
            )
    if wanted * 100 > neutral * (100 + CREDIT_PERCENT):
        yield (
            f"weights by demand that add up to {wanted}: "
            f"must not be more than {CREDIT_PERCENT} % above {neutral}"
        )


def _caps(period: Period, workloads: Mapping[str, WorkloadKnobs], rules: Rules) -> dict[str, Caps]:
    """The changes of caps, by workload."""
    found: dict[str, Caps] = {}
    for name, limits in period.limits.items():
        if name not in workloads:
            continue
        caps = workloads[name].caps
        wanted = {
            vcpu: (own.present_ppm, caps[vcpu])
            for vcpu, own in limits.own.items()
            if caps.get(vcpu, own.present_ppm) != own.present_ppm
        }
        wrong = [
            f"cap {ppm} ppm of tid {vcpu.tid}: must be from {LEAST_PPM} to {CORE_PPM}"
            for vcpu, (_, ppm) in wanted.items()
            if ppm and not LEAST_PPM <= ppm < CORE_PPM + bool(limits.own[vcpu].given_ppm)
        ]
        wrong += _strays(period, name, caps.keys() - limits.own.keys())
        wrong += _wrong_loans(limits, wanted)
        changes = [
            Change(vcpu, Knob.CAP, prior, ppm, rules.get(vcpu, UNEXPLAINED))
            for vcpu, (prior, ppm) in wanted.items()
        ]
        found[name] = Caps(changes, wrong)
    return found


def _strays(period: Period, name: str, others: Set[VcpuId]) -> Iterator[str]:
    """Nobody caps a vCPU of another workload. Whoever has gone is nobody's."""
    for workload in period.workloads if others else ():
        if workload.name != name:
            yield from (
                f"cap of tid {vcpu.id.tid}: is a vCPU of workload {workload.name}"
                for vcpu in workload.vcpus
                if vcpu.id in others
            )


def _wrong_loans(limits: Limits, wanted: Mapping[VcpuId, tuple[int, int]]) -> Iterator[str]:
    """Quotas that others gave may be handed around, and not come to more."""
    if not limits.is_divided:
        return
    after_ppm = sum(
        wanted.get(vcpu, (0, own.present_ppm))[1] or own.quota_ppm for vcpu, own in limits.own.items()
    )
    if after_ppm > limits.given_ppm:
        yield f"quotas that add up to {after_ppm} ppm: must not be more than the {limits.given_ppm} given"


def _pairs(moves: Sequence[Move]) -> list[list[Move]]:
    """Groups the two halves of each swap: one goes where the other comes from. Others stay alone."""
    waiting: dict[tuple[Core | None, Core | None], list[list[Move]]] = {}
    groups: list[list[Move]] = []
    for move in moves:
        halves = waiting.get((move.target, move.origin))
        if halves:
            halves.pop(0).append(move)
            continue
        group = [move]
        groups.append(group)
        if move.target is not None:
            waiting.setdefault((move.origin, move.target), []).append(group)
    return groups


def _affinities(
    groups: Sequence[Sequence[Move]], refused: set[str], violations: list[str]
) -> Iterator[Change]:
    """The affinity changes of the groups in which nobody's workload was refused."""
    for group in groups:
        if not any(move.workload in refused for move in group):
            yield from (move.change for move in group)
            continue
        violations += [
            f"workload {move.workload}: affinity of tid {move.change.vcpu.tid}: half of a refused swap"
            for move in group
            if move.workload not in refused
        ]
