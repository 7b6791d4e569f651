"""What a policy could gain that knew which threads are critical (experiments only).

It is told their names or thread ids, and gives them as much more weight than the others of their workload
as `critical` would (`weight_ratio`, `nested_weight_ratio`), from the first period in which it has seen what
they want. All else is that policy's with `fairness = "demand"`: the same sum by demand, the same debts, the
same dead band (critical/weights.py), the same latency for the others (critical/latency.py). A workload in
which nobody is critical, or everybody, stays as it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, NamedTuple

from ..model import Decision, Knob, Knobs, Period, PolicyState, Reason, Stake, Vcpu, VcpuId, Workload
from ..policy import Kind
from ..settings import Help, Range
from .latency import Latencies, delay, merged
from .names import matches
from .parameters import CriticalParameters
from .scores import FULL
from .weights import Claims, divide, is_off, settle


@dataclass(frozen=True, slots=True)
class OracleParameters:
    """Who is critical: the names of threads (with `*` at the end: their beginnings), and thread ids."""

    critical: Annotated[tuple[str, ...], Help('a list of names of threads such as ["main", "helper-*"]')] = ()
    tids: Annotated[
        tuple[Annotated[int, Range(1, 4_194_304)], ...], Help("a list of thread ids such as [4711]")
    ] = ()

    def knows(self, vcpu: Vcpu) -> bool:
        """Is this one critical?"""
        return vcpu.id.tid in self.tids or any(matches(name, vcpu.name) for name in self.critical)


@dataclass(frozen=True, slots=True)
class OracleState(PolicyState):
    """The weight of each vCPU when it was first seen, what it wanted of late (time running
    or ready, decaying), each workload's balance in weight × ns, and what those had who yield, as in
    critical/state.py."""

    neutral: tuple[tuple[VcpuId, int], ...] = ()
    demand_ns: tuple[tuple[VcpuId, int], ...] = ()
    owed: tuple[tuple[str, int], ...] = ()
    latencies: Latencies = ()


class _ToldPast(NamedTuple):
    """The state of the period before."""

    neutral: Mapping[VcpuId, int]
    demand_ns: Mapping[VcpuId, int]
    owed: Mapping[str, int]


@dataclass(slots=True)
class _ToldDraft:
    """A decision in the making."""

    knobs: dict[VcpuId, Knobs] = field(default_factory=dict)
    reasons: list[Reason] = field(default_factory=list)
    stakes: dict[VcpuId, Stake] = field(default_factory=dict)
    neutral: dict[VcpuId, int] = field(default_factory=dict)
    demand_ns: dict[VcpuId, int] = field(default_factory=dict)
    owed: dict[str, int] = field(default_factory=dict)
    low: dict[VcpuId, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Oracle:
    """Weight follows what it was told."""

    parameters: OracleParameters = field(default_factory=OracleParameters)
    weights: CriticalParameters = field(default_factory=CriticalParameters)
    name: str = "oracle"

    def initial_state(self) -> PolicyState:
        """Nobody seen."""
        return OracleState()

    def decide(self, period: Period, state: PolicyState) -> Decision:
        """New weights for the vCPUs whose weight is off."""
        known = state if isinstance(state, OracleState) else OracleState()
        past = _ToldPast(dict(known.neutral), dict(known.demand_ns), dict(known.owed))
        draft = _ToldDraft()
        for workload in period.workloads:
            seen = _look(workload, period, past, self.weights.decay_percent, draft)
            if seen:
                self._weigh(workload, seen, period, past, draft)
        delays = delay(period, draft.low, known.latencies, self.weights.yield_latency_percent)
        after = OracleState(
            tuple(draft.neutral.items()),
            tuple(draft.demand_ns.items()),
            tuple(draft.owed.items()),
            delays.before,
        )
        return Decision(
            merged(draft.knobs, delays.wanted_ns), (*draft.reasons, *delays.reasons), after, draft.stakes
        )

    def _weigh(
        self, workload: Workload, seen: Sequence[Vcpu], period: Period, past: _ToldPast, draft: _ToldDraft
    ) -> None:
        """Divide one workload's weight anew, and want what is off by much."""
        ids = [vcpu.id for vcpu in seen]
        claims = Claims(
            [draft.neutral[each] for each in ids],
            [draft.demand_ns[each] for each in ids],
            [FULL * self.parameters.knows(vcpu) for vcpu in seen],
        )
        if any(claims.scores):
            draft.low.update((each, 0) for each, score in zip(ids, claims.scores, strict=True) if not score)
        else:
            claims = claims._replace(scores=[FULL] * len(ids))
        owed = 0
        if workload.nested:
            wanted = divide(claims, self.weights.nested_weight_ratio)
        else:
            owed, charges = past.owed.get(workload.name, 0), _charges(ids, period, draft)
            owed, wanted = settle(claims, owed, charges, self.weights.weight_ratio)
            draft.owed[workload.name] = owed
        for each, score, new in zip(ids, claims.scores, wanted, strict=True):
            present = period.knobs[each].weight
            if present is not None and is_off(present, new, self.weights.deadband_percent):
                draft.knobs[each] = Knobs(new, None, None)
                rule = "oracle.raise" if score else "oracle.yield"
                draft.reasons.append(Reason(each, Knob.WEIGHT, rule, (("owed", owed),)))
        if not draft.knobs.keys().isdisjoint(ids):
            draft.stakes.update(zip(ids, map(Stake, claims.neutral, claims.demand_ns), strict=True))


def _look(
    workload: Workload, period: Period, past: _ToldPast, decay_percent: int, draft: _ToldDraft
) -> Sequence[Vcpu]:
    """Remember what each vCPU wanted; those whose weight is ours and who were there for the whole period."""
    seen = []
    for vcpu in workload.vcpus:
        knobs, used = period.knobs.get(vcpu.id), period.usage.get(vcpu.id)
        if knobs is None or knobs.weight is None:
            continue
        draft.neutral[vcpu.id] = past.neutral.get(vcpu.id, knobs.weight)
        if used is None:
            continue
        before_ns = past.demand_ns.get(vcpu.id, 0)
        draft.demand_ns[vcpu.id] = before_ns * decay_percent // 100 + used.consumed_ns + used.ready_ns
        seen.append(vcpu)
    return seen


def _charges(ids: Sequence[VcpuId], period: Period, draft: _ToldDraft) -> list[tuple[int, int, int]]:
    """What the weights in force cost: (weight, neutral, demand in the period)."""
    charges = []
    for each in ids:
        weight, used = period.knobs[each].weight, period.usage[each]
        if weight is not None and weight != draft.neutral[each]:
            charges.append((weight, draft.neutral[each], used.consumed_ns + used.ready_ns))
    return charges


KIND = Kind(
    "oracle",
    lambda parameters: Oracle(parameters.of(OracleParameters), parameters.of(CriticalParameters)),
    settings=(OracleParameters, CriticalParameters),
    rules={
        "oracle.raise": "the configuration says that it is critical",
        "oracle.yield": "the configuration does not say that it is critical",
    },
)
