"""From what a policy holds to neutral and back, and what is left of its wishes for those who stay neutral."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import TypeVar

from ..model import THREAD_KNOBS, Core, Decision, Knob, Knobs, Period, PolicyState, Reason, Stake, VcpuId
from ..period import seat
from ..tsa import MAX_WEIGHT_SPAN
from .state import KnobTable

WITHOUT, WITH, NEUTRAL = "guard.without", "guard.with", "guard.neutral"
"""The rules of the guard's writes: a window without the policy begins; it ends; a verdict holds."""


T = TypeVar("T")

NO_WISH = Knobs(None, None, None)
NOTHING_SEEN: Mapping[VcpuId, tuple[tuple[str, int], ...]] = MappingProxyType({})


def held(prior: KnobTable, period: Period) -> KnobTable:
    """The vCPUs one of whose knobs is not as it was before the policy, with their present knobs."""
    knobs_of = period.knobs
    return tuple(
        [
            (vcpu, present)
            for vcpu, was in prior
            if (present := knobs_of.get(vcpu)) and _wish(present, was) != NO_WISH
        ]
    )


def intended(prior: KnobTable, wishes: Mapping[VcpuId, Knobs], period: Period) -> KnobTable:
    """The vCPUs one of whose knobs would not be as before the policy if these wishes were granted, and what
    these knobs would be."""
    return tuple(
        [
            (vcpu, other)
            for vcpu, was in prior
            if (present := period.knobs.get(vcpu))
            and (other := _wish(was, _granted(present, wishes.get(vcpu, NO_WISH)))) != NO_WISH
        ]
    )


def fitting(saved: KnobTable, prior: KnobTable, period: Period) -> Mapping[VcpuId, Knobs]:
    """What was saved, without the weights of a workload whose sum they would change: of those among which it
    was divided one has gone since, or its weight is somebody else's. The policy begins these anew."""
    back, was_of = dict(saved), dict(prior)
    for workload in period.workloads:
        gains = {
            vcpu.id: weight - was
            for vcpu in workload.vcpus
            if (present := period.knobs.get(vcpu.id)) and present.weight is not None
            if (weight := back.get(vcpu.id, NO_WISH).weight) is not None
            if (was := was_of.get(vcpu.id, NO_WISH).weight) is not None
        }
        if sum(gains.values()):
            back |= {vcpu: back[vcpu]._replace(weight=None) for vcpu in gains}
    return back


def _granted(present: Knobs, wish: Knobs) -> Knobs:
    return Knobs(
        present.weight if wish.weight is None else wish.weight,
        wish.rescheduling_latency_ns or present.rescheduling_latency_ns,
        wish.affinity or present.affinity,
    )


def towards(
    period: Period,
    prior: KnobTable,
    targets: Mapping[VcpuId, Knobs],
    rule: str,
    state: PolicyState,
    seen: Mapping[VcpuId, tuple[tuple[str, int], ...]] = NOTHING_SEEN,
) -> Decision:
    """Wants these knobs, as far as they are ours, because of what was `seen`. Weights have stakes: the sum of
    those before the policy is what must not be exceeded, whoever came and went since."""
    knobs: dict[VcpuId, Knobs] = {}
    reasons: list[Reason] = []
    stakes: dict[VcpuId, Stake] = {}
    allowed_of = {vcpu.id: vcpu.allowed for workload in period.workloads for vcpu in workload.vcpus}
    for vcpu, was in prior:
        present, target = period.knobs.get(vcpu), targets.get(vcpu)
        if present is None or target is None:
            continue
        wish = _wish(present, _within(target, allowed_of.get(vcpu, frozenset())))
        if wish.weight is not None and was.weight is not None:
            lowest, highest = -(-was.weight // MAX_WEIGHT_SPAN), was.weight * MAX_WEIGHT_SPAN
            wish = wish._replace(weight=min(max(wish.weight, lowest), highest))
        if present.weight is not None and was.weight is not None:
            stakes[vcpu] = Stake(was.weight, 1)
        if wish != NO_WISH:
            knobs[vcpu] = wish
            changed = [knob for knob, new in zip(THREAD_KNOBS, wish, strict=True) if new is not None]
            reasons += [Reason(vcpu, knob, rule, seen.get(vcpu, ())) for knob in changed]
    return Decision(knobs, tuple(reasons), state, stakes)


def _within(target: Knobs, allowed: frozenset[Core]) -> Knobs:
    """The target, but on none of the cores that somebody else has taken from the vCPU since."""
    if target.affinity is None or target.affinity <= allowed:
        return target
    return target._replace(affinity=target.affinity & allowed or None)


def _wish(present: Knobs, target: Knobs) -> Knobs:
    """What of the target differs, and is ours on both sides."""
    return Knobs(
        _other(present.weight, target.weight),
        _other(present.rescheduling_latency_ns, target.rescheduling_latency_ns),
        _other(present.affinity, target.affinity),
    )


def _other(now: T | None, new: T | None) -> T | None:
    return new if now is not None and new is not None and new != now else None


def noted(prior: KnobTable, wishes: Mapping[VcpuId, Knobs], period: Period) -> KnobTable:
    """Each knob before the policy's first wish for it, None where it has wished nothing; whoever is gone is
    forgotten when something new comes."""
    known = dict(prior)
    new = {
        vcpu: was
        for vcpu, wish in wishes.items()
        if (present := period.knobs.get(vcpu))
        and (was := _noted(known.get(vcpu, NO_WISH), wish, present)) != known.get(vcpu, NO_WISH)
    }
    if not new:
        return prior
    return tuple(({vcpu: was for vcpu, was in prior if vcpu in period.knobs} | new).items())


def _noted(was: Knobs, wish: Knobs, present: Knobs) -> Knobs:
    return Knobs(
        _first(was.weight, wish.weight, present.weight),
        _first(was.rescheduling_latency_ns, wish.rescheduling_latency_ns, present.rescheduling_latency_ns),
        _first(was.affinity, wish.affinity, present.affinity),
    )


def _first(was: T | None, wanted: T | None, now: T | None) -> T | None:
    return now if was is None and wanted is not None else was


def followed(prior: KnobTable, period: Period) -> KnobTable:
    """The same without knobs that are not ours now: what they hold once they are again is what was before the
    policy. And where a mask was wished, with what its vCPU may use now. Whoever changed that since the wish
    meant it, and the mask before the policy would be theirs by now."""
    prior = _without_others(prior, period)
    if all(was.affinity is None for _, was in prior):
        return prior
    allowed_of = {vcpu.id: vcpu.allowed for workload in period.workloads for vcpu in workload.vcpus}
    return tuple(
        [
            (vcpu, was._replace(affinity=allowed))
            if was.affinity is not None and (allowed := allowed_of.get(vcpu))
            else (vcpu, was)
            for vcpu, was in prior
        ]
    )


def _without_others(prior: KnobTable, period: Period) -> KnobTable:
    hidden = {
        vcpu: kept
        for vcpu, was in prior
        if (present := period.knobs.get(vcpu)) and None in present and (kept := _kept(was, present)) != was
    }
    return tuple([(vcpu, hidden.get(vcpu, was)) for vcpu, was in prior]) if hidden else prior


def _kept(was: Knobs, present: Knobs) -> Knobs:
    return Knobs(
        None if present.weight is None else was.weight,
        None if present.rescheduling_latency_ns is None else was.rescheduling_latency_ns,
        None if present.affinity is None else was.affinity,
    )


def sparing(decision: Decision, spared: Collection[VcpuId], period: Period) -> Decision:
    """The decision without wishes for these vCPUs, and without the other halves of their swaps."""
    dropped = {vcpu: wish for vcpu, wish in decision.knobs.items() if vcpu in spared}
    if not dropped:
        return decision
    kept = {vcpu: wish for vcpu, wish in decision.knobs.items() if vcpu not in spared}
    missing = [
        (target, seat(period, vcpu))
        for vcpu, wish in dropped.items()
        if vcpu in period.knobs and (target := _only(wish)) is not None
    ]
    for vcpu, wish in list(kept.items()):
        move = (seat(period, vcpu), _only(wish)) if vcpu in period.knobs else None
        if move in missing:
            missing.remove(move)
            kept[vcpu] = wish._replace(affinity=None)
    reasons = [reason for reason in decision.reasons if _wanted(reason, kept)]
    return replace(decision, knobs=kept, reasons=tuple(reasons))


def _only(wish: Knobs) -> Core | None:
    """The core that a vCPU shall be pinned to."""
    affinity = wish.affinity
    return next(iter(affinity)) if affinity is not None and len(affinity) == 1 else None


def _wanted(reason: Reason, kept: Mapping[VcpuId, Knobs]) -> bool:
    if reason.knob is Knob.CAP:
        return True  # the guard leaves caps alone
    wish = kept.get(reason.vcpu)
    return wish is not None and dict(zip(THREAD_KNOBS, wish, strict=True))[reason.knob] is not None
