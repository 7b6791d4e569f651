"""The policy: each period remember, judge and weigh, one workload after the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import repeat
from typing import NamedTuple

from .. import model
from ..bandwidth.loans import NO_LOANS, Lending, Loans, loans_of_all
from ..bandwidth.parameters import BandwidthParameters
from ..bandwidth.rule import NO_CAPS, CapMemory, Capping, caps_of_all
from ..model import IDLE, Decision, Knob, Knobs, Period, PolicyState, Reason, Stake, VcpuId, Workload
from ..policy import Kind
from .answers import waited_for
from .calm import Calm, begins
from .crowd import Cpus, Crowds, Witness, crowds_after, fair_turn_ns
from .late import Claimant, behind_ns, lateness, lowered
from .latency import delay, low, merged
from .memory import SEASONED, Ageing, Counting, Memory, remember
from .parameters import CriticalParameters, Fairness
from .scores import FULL, Scores, judge, short
from .state import CriticalState
from .weights import Balance, Claims, divide, free, is_off, settle

_WEIGHT = Knob.WEIGHT


class _Past(NamedTuple):
    """The state of the period before: memory and excess, neutral weight, balance of the workload, and by how
    much it is behind."""

    memories: Mapping[VcpuId, tuple[Memory, int]]
    neutral: Mapping[VcpuId, int]
    balances: Mapping[str, Balance]
    late: Mapping[str, int]


@dataclass(slots=True)
class _Seen:
    """One workload after a period: what is remembered of its vCPUs and their excess until now, the weights
    that are ours, what those that are not neutral cost: (weight, neutral, demand in the period), and for how
    long all of them ran."""

    memories: list[Memory] = field(default_factory=list)
    excess: list[int] = field(default_factory=list)
    weights: dict[VcpuId, int] = field(default_factory=dict)
    charges: list[tuple[int, int, int]] = field(default_factory=list)
    run_ns: int = 0


@dataclass(slots=True)
class _Draft:
    """A decision in the making."""

    knobs: dict[VcpuId, Knobs] = field(default_factory=dict)
    reasons: list[Reason] = field(default_factory=list)
    stakes: dict[VcpuId, Stake] = field(default_factory=dict)
    neutral: dict[VcpuId, int] = field(default_factory=dict)
    blind: list[str] = field(default_factory=list)
    balances: list[tuple[str, Balance]] = field(default_factory=list)
    late: list[tuple[str, int]] = field(default_factory=list)
    witnesses: dict[Cpus, list[Witness]] = field(default_factory=dict)
    claimants: dict[Cpus, list[Claimant]] = field(default_factory=dict)
    memories: list[Memory] = field(default_factory=list)
    excess: list[int] = field(default_factory=list)
    waited_for: dict[str, set[VcpuId]] = field(default_factory=dict)
    """The critical vCPUs of each workload that was judged."""
    weighs: bool = False
    """Whether anybody has a weight of ours."""
    low: dict[VcpuId, int] = field(default_factory=dict)
    """The scores of those who may have to yield (latency.py)."""


class _Terms(NamedTuple):
    """The rules, what was seen of all workloads together, how long the period was, what fades in it, and for
    how long nothing has been done."""

    rules: CriticalParameters
    crowds: Crowds
    behind_ns: Mapping[str, int]
    length_ns: int
    decay_percent: int
    calm: Calm


@dataclass(frozen=True, slots=True)
class Critical:
    """Weight follows the critical path inside each workload; between workloads nobody has more or
    less time. Who yields may start later."""

    parameters: CriticalParameters = field(default_factory=CriticalParameters)
    bandwidth: BandwidthParameters = field(default_factory=BandwidthParameters)
    name: str = "critical"

    def initial_state(self) -> PolicyState:
        """Nobody seen."""
        return CriticalState()

    def decide(self, period: Period, state: PolicyState) -> Decision:
        """New weights and latencies for the vCPUs that have others than they should."""
        known = state if isinstance(state, CriticalState) else CriticalState()
        ageing = Ageing.over(period.length_ns, self.parameters)
        calm = Calm(known.calm, known.pause_ns)
        if period.unwatched:
            return _not_judged(period, known, ageing, calm)
        return self._judge(period, known, ageing, calm)

    def _judge(self, period: Period, known: CriticalState, ageing: Ageing, calm: Calm) -> Decision:
        """What a period says in which wake-ups were followed, if the host can."""
        past, draft, rules = _past(known), _Draft(), self.parameters
        looks = [_look(each, period, past, ageing, rules.is_strict(each), draft) for each in period.workloads]
        terms = _Terms(
            rules,
            crowds_after(dict(known.crowds), period.length_ns, draft.witnesses, ageing.decay_percent),
            behind_ns(period.length_ns, draft.claimants),
            period.length_ns,
            ageing.decay_percent,
            calm,
        )
        for workload, seen in zip(period.workloads, looks, strict=True):
            draft.weighs |= bool(seen.charges)
            if seen.memories or seen.charges:
                verdict = judge(seen.memories, seen.excess, rules, ageing.steps)
                _weigh(workload, seen, verdict, past, terms, draft)
                draft.low |= low(seen.memories, verdict.scores)
                draft.waited_for[workload.name] = waited_for(seen.memories, verdict, rules.burst_ns)
                if seen.memories and verdict.level is Counting.NONE:
                    draft.blind.append(workload.name)
        delays = delay(period, draft.low, known.latencies, rules.yield_latency_percent)
        wishes = merged(draft.knobs, delays.wanted_ns)
        capping = self._cap(period, draft, known.holdings)
        lending = self._lend(period, draft, known.loans)
        neutral = tuple(draft.neutral.items())
        unjudged = any(memory.periods < SEASONED for memory in draft.memories)
        wished = tuple([(vcpu, period.knobs[vcpu]) for vcpu in wishes])
        acts = not set(known.wished).issuperset(wished) or bool(capping.holdings or lending.loans)
        in_force = draft.weighs or bool(delays.before or wishes)
        calm = calm.after(period.length_ns, acts=acts, unjudged=unjudged, in_force=in_force)
        after = CriticalState(
            known.neutral if neutral == known.neutral else neutral,
            tuple(draft.blind),
            tuple(draft.balances),
            tuple(terms.crowds.items()),
            tuple(draft.memories),
            tuple(draft.excess),
            calm.looks,
            calm.pause_ns,
            delays.before,
            tuple(draft.late),
            capping.holdings,
            lending.loans,
            wished,
        )
        workloads = {**capping.wanted, **lending.wanted}
        reasons = (*draft.reasons, *delays.reasons, *capping.reasons, *lending.reasons)
        decided = wishes, reasons, after, draft.stakes, 1 if unjudged else calm.rest
        return Decision(*decided, can_wait=True, unwatched=calm.pause_ns > 0, workloads=workloads)

    def _cap(self, period: Period, draft: _Draft, before: Sequence[CapMemory]) -> Capping:
        """Caps where a limit binds, if they are asked for."""
        return caps_of_all(period, draft.waited_for, before) if self.bandwidth.caps else NO_CAPS

    def _lend(self, period: Period, draft: _Draft, before: Sequence[Loans]) -> Lending:
        """Loans where each vCPU has a quota of its own."""
        return loans_of_all(period, draft.waited_for, before) if self.bandwidth.caps else NO_LOANS


def _past(known: CriticalState) -> _Past:
    """By vCPU and by workload."""
    pairs = {
        memory.vcpu: (memory, excess) for memory, excess in zip(known.memories, known.excess, strict=True)
    }
    return _Past(pairs, dict(known.neutral), dict(known.balances), dict(known.late))


def _not_judged(period: Period, known: CriticalState, ageing: Ageing, calm: Calm) -> Decision:
    """Nothing is learned from a period in which wake-ups were not followed, but whether they should be. No
    weight or cap of ours is in force then. What has begun is looked at soon, as far as the budget allows."""
    begun = begins(period, known.memories, ageing)
    calm = calm.stirred() if begun else calm.after_unwatched(period.length_ns)
    state = replace(known, calm=calm.looks, pause_ns=calm.pause_ns)
    return Decision(state=state, rest=1 if begun else calm.rest, can_wait=True, unwatched=calm.pause_ns > 0)


def _look(
    workload: Workload, period: Period, past: _Past, ageing: Ageing, strict: bool, draft: _Draft
) -> _Seen:
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
            if used and used is not IDLE:
                run_ns, ready_ns = used.consumed_ns, used.ready_ns
                if strict:
                    claimant = Claimant(workload.name, weight, neutral, run_ns, ready_ns)
                    draft.claimants.setdefault(vcpu.allowed, []).append(claimant)
                    seen.run_ns += run_ns
                elif not workload.nested:
                    draft.witnesses.setdefault(vcpu.allowed, []).append((weight, run_ns, ready_ns))
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
    workload: Workload, seen: _Seen, verdict: Scores, past: _Past, terms: _Terms, draft: _Draft
) -> None:
    """Weigh one workload's vCPUs anew, and want what is off by much."""
    memories, weights, neutral_of, rules = seen.memories, seen.weights, draft.neutral, terms.rules
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
    deadband_percent = rules.deadband_percent
    if rules.is_strict(workload):
        patient = rules.fairness is Fairness.GIVING
        least = 0 if patient else _least(workload, seen, past, terms, draft)
        wanted = lowered(claims.neutral, claims.scores, least, rules.weight_ratio)
        deadband_percent = deadband_percent if least < FULL else 0
    elif workload.nested:
        wanted = divide(claims, rules.nested_weight_ratio)
    else:
        run_ns = [memories[row].run_ns for row in rows]
        claims, wanted = _by_demand(workload, seen, claims, run_ns, past, terms, draft)
    if terms.calm.is_long and not any(map(is_off, claims.neutral, wanted, repeat(deadband_percent))):
        wanted, deadband_percent = list(claims.neutral), 0  # nobody is preferred by much: nothing need stay
    off = [
        (row, new)
        for row, vcpu, new in zip(rows, ids, wanted, strict=True)
        if is_off(weights[vcpu], new, deadband_percent)
    ]
    others = weights.keys() - ids if len(ids) < len(weights) else ()
    for vcpu in weights:
        if vcpu in others and weights[vcpu] != neutral_of[vcpu]:
            draft.knobs[vcpu] = Knobs(neutral_of[vcpu], None, None)
            draft.reasons.append(Reason(vcpu, _WEIGHT, "critical.neutral"))
            draft.stakes[vcpu] = Stake(neutral_of[vcpu], 0)
    if off:
        draft.stakes.update(zip(ids, map(Stake, claims.neutral, claims.demand_ns), strict=True))
        _want(off, memories, verdict, draft)


def _least(workload: Workload, seen: _Seen, past: _Past, terms: _Terms, draft: _Draft) -> int:
    """The least part of its neutral weight that anybody of this workload may have, in thousandths."""
    home = workload.name
    usual_ns = sum([memory.run_ns for memory in seen.memories]) * (100 - terms.decay_percent) // 100
    late_ns, least = lateness(
        past.late.get(home, 0), terms.behind_ns.get(home), seen.run_ns, usual_ns, terms.length_ns
    )
    if late_ns:
        draft.late.append((home, late_ns))
    return least


def _by_demand(
    workload: Workload,
    seen: _Seen,
    claims: Claims,
    run_ns: Sequence[int],
    past: _Past,
    terms: _Terms,
    draft: _Draft,
) -> tuple[Claims, list[int]]:
    """The claims that count, and weights that keep the sum by demand."""
    balance = past.balances.get(workload.name, Balance())
    places = {vcpu.allowed for vcpu in workload.vcpus}
    turn_ns = fair_turn_ns(terms.crowds, places, min(claims.neutral, default=0))
    part = free(claims, run_ns, turn_ns)
    charges = [
        (weight, neutral, ns if weight < neutral else ns * (FULL - balance.free) // FULL)
        for weight, neutral, ns in seen.charges
    ]
    claims = claims.without(part)
    owed, wanted = settle(claims, balance.owed, charges, terms.rules.weight_ratio)
    if owed or part:
        draft.balances.append((workload.name, Balance(owed, part)))
    return claims, wanted


def _want(
    off: Sequence[tuple[int, int]],
    memories: Sequence[Memory],
    verdict: Scores,
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


KIND = Kind(
    "critical",
    lambda parameters: Critical(parameters.of(CriticalParameters), parameters.of(BandwidthParameters)),
    settings=(CriticalParameters, BandwidthParameters),
    edges=model.Level.FULL,  # and chains (docs/critical.md)
    rules={
        "critical.path": "siblings wait for what it does",
        "critical.yield": "hardly anybody waits for it, so it yields to those that siblings wait for",
        "critical.later": "hardly anybody waits for it, so it may start later than those that are waited for",
        "bandwidth.cap": "hardly anybody waits for it, so a cap keeps it from using up the workload's limit",
        "bandwidth.free": "it is waited for, or the workload's limit binds no more: it needs no cap",
        "bandwidth.lend": "hardly anybody waits for it, so part of its quota is lent to those that are",
        "bandwidth.borrow": "siblings wait for it and its own quota stopped it, so it has part of theirs",
        "bandwidth.returned": "nothing is lent any more: its quota is as it was given",
        "critical.neutral": "it is not judged at present, so it is as if nobody were preferred",
    },
)
