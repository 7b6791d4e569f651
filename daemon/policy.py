"""What decides: the Policy protocol, the policies by name, and the paper's own (§4: TSA, then RLA, then RCR).

A policy is a pure function of the period and of what it remembered; what it wants to remember it hands back
in the decision. In a decision, a knob that is None stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Protocol

from .critical import Critical, CriticalParameters
from .entitlement import Standing, standings
from .guard import Guarded, GuardParameters
from .model import Core, Decision, Knobs, Level, Period, PolicyState, Reason, VcpuId
from .rcr import RcrParameters, Resolution, resolve
from .rivals import Bvt, BvtParameters, Oracle, OracleParameters, Parties, PartiesParameters, StaticPinning, Untouched
from .rla import Adjustment, RlaParameters, adjust
from .tsa import TsaParameters, reweigh


class Policy(Protocol):
    """Decides what should change, from what happened and what it remembers."""

    @property
    def name(self) -> str:
        """The name in the configuration and in the record."""

    def initial_state(self) -> PolicyState:
        """What it remembers before the first period."""

    def decide(self, period: Period, state: PolicyState) -> Decision:
        """Wanted knobs, reasons and the next state; the same for the same arguments, always."""


@dataclass(frozen=True, slots=True)
class Parameters:
    """The settings of all policies. Without `guard` they act unguarded, as in older records."""

    tsa: TsaParameters = field(default_factory=TsaParameters)
    rla: RlaParameters = field(default_factory=RlaParameters)
    rcr: RcrParameters = field(default_factory=RcrParameters)
    critical: CriticalParameters = field(default_factory=CriticalParameters)
    guard: GuardParameters | None = None
    oracle: OracleParameters = field(default_factory=OracleParameters)
    bvt: BvtParameters = field(default_factory=BvtParameters)
    parties: PartiesParameters = field(default_factory=PartiesParameters)


@dataclass(frozen=True, slots=True)
class DasecState(PolicyState):
    """Whom RLA has seen, and whom RCR moved in which period (its index)."""

    started: tuple[VcpuId, ...] = ()
    moved: tuple[tuple[VcpuId, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Dasec:
    """The paper's policy: slices, then rescheduling latencies, then the layout (§4.2)."""

    parameters: Parameters = field(default_factory=Parameters)
    name: str = "dasec"

    def initial_state(self) -> PolicyState:
        """Nobody seen, nobody moved."""
        return DasecState()

    def decide(self, period: Period, state: PolicyState) -> Decision:
        """The three rules in order; each sees what those before it decided, and each can be switched off."""
        known = state if isinstance(state, DasecState) else DasecState()
        rules = self.parameters
        now = standings(period, rules.tsa.tick_ns)
        weights, reasons = self._reweigh(now)
        latencies = Adjustment({}, [], known.started)
        if rules.rla.enabled:
            latencies = adjust(now, known.started, rules.rla)
        layout = Resolution({}, [], known.moved)
        if rules.rcr.enabled:
            layout = resolve(period, now, weights, latencies.latencies_ns, known.moved, rules.rcr)
        return Decision(
            _merged(weights, latencies.latencies_ns, layout.pins),
            (*reasons, *latencies.reasons, *layout.reasons),
            DasecState(latencies.started, layout.moved),
        )

    def _reweigh(self, now: Sequence[Standing]) -> tuple[dict[VcpuId, int], list[Reason]]:
        weights: dict[VcpuId, int] = {}
        reasons: list[Reason] = []
        if self.parameters.tsa.enabled:
            for standing in now:
                allocation = reweigh(standing, self.parameters.tsa)
                weights.update(allocation.weights)
                reasons += allocation.reasons
        return weights, reasons


def _merged(
    weights: Mapping[VcpuId, int], latencies_ns: Mapping[VcpuId, int], pins: Mapping[VcpuId, Core]
) -> dict[VcpuId, Knobs]:
    """One Knobs for each vCPU that any rule wants to change."""
    changed = dict.fromkeys((*weights, *latencies_ns, *pins))
    return {
        # Like Knobs(...), without the Python code of a named tuple's constructor (decision 0003).
        vcpu: tuple.__new__(
            Knobs,
            (weights.get(vcpu), latencies_ns.get(vcpu), frozenset((pins[vcpu],)) if vcpu in pins else None),
        )
        for vcpu in changed
    }


POLICIES: Mapping[str, Callable[[Parameters], Policy]] = MappingProxyType(
    {
        "none": lambda parameters: Untouched(),
        "dasec": Dasec,
        "critical": lambda parameters: Critical(parameters.critical),
        "static": lambda parameters: StaticPinning(),
        "bvt": lambda parameters: Bvt(parameters.bvt),
        "parties": lambda parameters: Parties(parameters.parties),
        "oracle": lambda parameters: Oracle(parameters.oracle, parameters.critical),
    }
)


EDGES: Mapping[str, Level] = MappingProxyType({"dasec": Level.EDGES, "critical": Level.FULL})
"""How much each policy wants to know of who woke whom; by default nothing. RLA follows wake-ups back to
their sources (§4.2), and `critical` also needs chains (docs/critical.md)."""


def policy_named(name: str, parameters: Parameters) -> Policy:
    """The policy of that name; a ValueError that lists the known ones if there is none."""
    if name not in POLICIES:
        raise ValueError(f"policy {name!r}: not known: use one of {', '.join(POLICIES)}")
    policy = POLICIES[name](parameters)
    return policy if parameters.guard is None else Guarded(policy, parameters.guard)
