"""The policy: each period remember, judge and weigh, one workload after the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ..model import IDLE, Decision, Knob, Knobs, Period, PolicyState, Reason, Stake, VcpuId, Workload
from .calm import calmer, periods_to_rest
from .crowd import Cpus, Crowds, Witness, crowds_after, fair_turn_ns
from .latency import delay, low, merged
from .memory import SEASONED, Ageing, Level, Memory, remember
from .parameters import CriticalParameters
from .scores import FULL, Scores, judge, short
from .state import CriticalState
from .weights import Balance, Claims, free, is_off, settle

_WEIGHT = Knob.WEIGHT


class _Past(NamedTuple):
    """The state of the period before: memory and excess, neutral weight, balance of the workload."""

    memories: Mapping[VcpuId, tuple[Memory, int]]
    neutral: Mapping[VcpuId, int]
    balances: Mapping[str, Balance]


@dataclass(slots=True)
class _Seen:
    """One workload after a period: what is remembered of its vCPUs and their excess until now, the weights
    that are ours, and what those that are not neutral cost: (weight, neutral, demand in the period)."""

    memories: list[Memory] = field(default_factory=list)
    excess: list[int] = field(default_factory=list)
    weights: dict[VcpuId, int] = field(default_factory=dict)
    charges: list[tuple[int, int, int]] = field(default_factory=list)


@dataclass(slots=True)
class _Draft:
    """A decision in the making."""

    knobs: dict[VcpuId, Knobs] = field(default_factory=dict)
    reasons: list[Reason] = field(default_factory=list)
    stakes: dict[VcpuId, Stake] = field(default_factory=dict)
    neutral: dict[VcpuId, int] = field(default_factory=dict)
    blind: list[str] = field(default_factory=list)
    balances: list[tuple[str, Balance]] = field(default_factory=list)
    witnesses: dict[Cpus, list[Witness]] = field(default_factory=dict)
    memories: list[Memory] = field(default_factory=list)
    excess: list[int] = field(default_factory=list)
    low: dict[VcpuId, int] = field(default_factory=dict)
    """The scores of those who may have to yield (latency.py)."""


@dataclass(frozen=True, slots=True)
class Critical:
    """Weight follows the critical path inside each workload; between workloads nobody has more or
    less time. Who yields may start later."""

    parameters: CriticalParameters = field(default_factory=CriticalParameters)
    name: str = "critical"

    def initial_state(self) -> PolicyState:
        """Nobody seen."""
        return CriticalState()

    def decide(self, period: Period, state: PolicyState) -> Decision:
        """New weights and latencies for the vCPUs that have others than they should."""
        known = state if isinstance(state, CriticalState) else CriticalState()
        pairs = zip(known.memories, known.excess, strict=True)
        past = _Past({pair[0][0]: pair for pair in pairs}, dict(known.neutral), dict(known.balances))
        draft = _Draft()
        rules = self.parameters
        ageing = Ageing.over(period.length_ns, rules)
        looks = [_look(each, period, past, ageing, draft) for each in period.workloads]
        crowds = crowds_after(dict(known.crowds), period.length_ns, draft.witnesses, ageing.decay_percent)
        for workload, seen in zip(period.workloads, looks, strict=True):
            balance = past.balances.get(workload.name, Balance())
            if seen.memories or seen.charges:
                verdict = judge(seen.memories, seen.excess, rules, ageing.steps)
                balance = _weigh(workload, seen, verdict, balance, crowds, rules, draft)
                draft.low |= low(seen.memories, verdict.scores)
                if seen.memories and verdict.level is Level.NONE:
                    draft.blind.append(workload.name)
            if any(balance):
                draft.balances.append((workload.name, balance))
        delays = delay(period, draft.low, known.latencies, rules.yield_latency_percent)
        wishes = merged(draft.knobs, delays.wanted_ns)
        neutral = tuple(draft.neutral.items())
        unjudged = any(memory.periods < SEASONED for memory in draft.memories)
        calm = calmer(known.calm, stirred=unjudged or bool(wishes))
        after = CriticalState(
            known.neutral if neutral == known.neutral else neutral,
            tuple(draft.blind),
            tuple(draft.balances),
            tuple(crowds.items()),
            tuple(draft.memories),
            tuple(draft.excess),
            calm,
            delays.before,
        )
        rest = periods_to_rest(calm)
        return Decision(wishes, (*draft.reasons, *delays.reasons), after, draft.stakes, rest, can_wait=True)


def _look(workload: Workload, period: Period, past: _Past, ageing: Ageing, draft: _Draft) -> _Seen:
    """Remember what each vCPU did."""
    usage_of, knobs_of = period.usage, period.knobs
    memories_of, neutral_of = past.memories, past.neutral
    seen = _Seen()
    for vcpu in workload.vcpus:
        id_ = vcpu.id
        knobs, used, pair = knobs_of.get(id_), usage_of.get(id_), memories_of.get(id_)
        if knobs is None:
            continue
        weight = knobs.weight
        if weight is not None:
            seen.weights[id_] = weight
            neutral = draft.neutral[id_] = neutral_of.get(id_, weight)
            if used and used is not IDLE and not workload.nested:
                witness = weight, used.consumed_ns, used.ready_ns
                draft.witnesses.setdefault(vcpu.allowed, []).append(witness)
            if weight != neutral and used:
                seen.charges.append((weight, neutral, used.consumed_ns + used.ready_ns))
        if used is None or (used is IDLE and pair is None):
            continue
        then, excess = pair or (None, 0)
        memory = remember(then, id_, used, knobs_of, ageing)
        if memory:
            seen.memories.append(memory)
            seen.excess.append(excess)
    return seen


def _weigh(
    workload: Workload,
    seen: _Seen,
    verdict: Scores,
    balance: Balance,
    crowds: Crowds,
    rules: CriticalParameters,
    draft: _Draft,
) -> Balance:
    """Divide one workload's weight anew, and want what is off by much; returns the workload's balance."""
    memories, weights, neutral_of = seen.memories, seen.weights, draft.neutral
    draft.memories += memories
    draft.excess += verdict.excess
    rows = [
        row for row, memory in enumerate(memories) if memory.periods >= SEASONED and memory.vcpu in weights
    ]
    ids = [memories[row].vcpu for row in rows]
    claims = Claims(
        [neutral_of[vcpu] for vcpu in ids],
        [memories[row].busy_ns for row in rows],
        [verdict.scores[row] for row in rows],
    )
    places = set() if workload.nested else {vcpu.allowed for vcpu in workload.vcpus}
    turn_ns = fair_turn_ns(crowds, places, min(claims.neutral, default=0))
    part = free(claims, [memories[row].run_ns for row in rows], turn_ns)
    claims = claims.without(part)
    charges = [
        (weight, neutral, ns if weight < neutral else ns * (FULL - balance.free) // FULL)
        for weight, neutral, ns in seen.charges
    ]
    owed, wanted = settle(claims, balance.owed, charges, rules.ratio_for(workload))
    off = [
        (row, new)
        for row, vcpu, new in zip(rows, ids, wanted, strict=True)
        if is_off(weights[vcpu], new, rules.deadband_percent)
    ]
    others = weights.keys() - ids if len(ids) < len(weights) else ()
    for vcpu in weights:
        if vcpu in others and weights[vcpu] != neutral_of[vcpu]:
            draft.knobs[vcpu] = Knobs(neutral_of[vcpu], None, None)
            draft.reasons.append(Reason(vcpu, _WEIGHT, "critical.neutral"))
            draft.stakes[vcpu] = Stake(neutral_of[vcpu], 0)
    if off:
        draft.stakes.update(zip(ids, map(Stake, claims.neutral, claims.demand_ns), strict=True))
        _want(off, memories, verdict, rules, draft)
    return Balance(owed, part)


def _want(
    off: Sequence[tuple[int, int]],
    memories: Sequence[Memory],
    verdict: Scores,
    rules: CriticalParameters,
    draft: _Draft,
) -> None:
    """Knobs and reasons of the vCPUs in those rows, with their new weights."""
    for row, weight in off:
        memory, score = memories[row], verdict.scores[row]
        vcpu = memory.vcpu
        draft.knobs[vcpu] = Knobs(weight, None, None)
        seen = (
            ("score", score),
            ("rank", verdict.ranks[row]),
            ("short", short(memory)),
            ("demand_ns", memory.busy_ns),
            ("level", int(verdict.level)),
        )
        rule = "critical.path" if score * 2 >= FULL else "critical.yield"
        draft.reasons.append(Reason(vcpu, _WEIGHT, rule, seen))
