"""Reservations kept while workloads come and go: a policy around a policy, which gives masks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Generic, NamedTuple, TypeVar

from ..model import (
    NO_KNOBS,
    Core,
    Decision,
    Knob,
    Knobs,
    Period,
    PolicyState,
    Reason,
    Topology,
    Vcpu,
    VcpuId,
    Workload,
)
from ..policy import Policy
from .allocate import Refused, allocate, cpus
from .grants import Ask, CpuClass, Grant, Reservations
from .parameters import ReservationParameters
from .take import CpuPlace

S = TypeVar("S", bound=PolicyState)
Cpus = tuple[int, ...]

RULES: Mapping[str, str] = MappingProxyType(
    {
        "reserve.own": "its workload has CPUs reserved, and runs on these alone",
        "reserve.shared": "other workloads have CPUs reserved, and it runs on the rest",
    }
)
"""What each of its reasons means, in words for an operator."""


class Kept(NamedTuple):
    """What a workload has: as it asked, the CPUs of its own, and millicores of others."""

    workload: str
    millicores: int
    cpu_class: CpuClass
    exclusive: Cpus = ()
    parts: tuple[tuple[int, int], ...] = ()

    def grant(self) -> Grant:
        """As the allocator takes it."""
        return Grant(
            Ask(self.workload, self.millicores, self.cpu_class), frozenset(self.exclusive), self.parts
        )


class Aim(NamedTuple):
    """The CPUs on which a workload was to run."""

    workload: str
    cpus: Cpus


class Unkept(NamedTuple):
    """A reservation that is not what was asked for, and why."""

    workload: str
    why: str


@dataclass(frozen=True, slots=True)
class ReservationState(PolicyState, Generic[S]):
    """`inner`: of the policy that decides all else. `aims`: of each workload that may not run everywhere;
    more than one while some of its vCPUs are where they were to be before."""

    inner: S
    kept: tuple[Kept, ...] = ()
    aims: tuple[Aim, ...] = ()
    unkept: tuple[Unkept, ...] = ()


def held_in(state: PolicyState, topology: Topology) -> Reservations | None:
    """What is reserved by a policy that is in this state; None where nobody may ask."""
    if not isinstance(state, ReservationState):
        return None
    grants = {each.workload: each.grant() for each in state.kept}
    return Reservations(_places(topology), grants)


@dataclass(frozen=True, slots=True)
class Reserving:
    """Each workload stays on its CPUs; within these the inner policy decides as if there were no others."""

    inner: Policy
    parameters: ReservationParameters

    @property
    def name(self) -> str:
        """The inner policy's: reservations are terms for it."""
        return self.inner.name

    def initial_state(self) -> PolicyState:
        """Nothing is reserved yet."""
        return ReservationState(self.inner.initial_state())

    def decide(self, period: Period, state: PolicyState) -> Decision:
        """What the inner policy wants within the reservations, and masks for those who are outside."""
        known = state if isinstance(state, ReservationState) else ReservationState(self.inner.initial_state())
        held, refused = _followed(known, self.parameters, period)
        aims = _aims(held, period)
        decision = self.inner.decide(_confined(period, aims), known.inner)
        masks = _Masks(known.aims, held, aims)
        for workload in period.workloads:
            masks.add(workload, period.knobs, decision)
        return replace(
            decision,
            knobs={**decision.knobs, **masks.knobs},
            reasons=(*decision.reasons, *masks.reasons),
            state=ReservationState(
                decision.state,
                tuple(map(_kept, held.grants.values())),
                tuple(masks.aims),
                (*refused, *masks.astray),
            ),
        )


def _kept(grant: Grant) -> Kept:
    ask = grant.ask
    return Kept(ask.name, ask.millicores, ask.cpu_class, tuple(sorted(grant.exclusive)), grant.parts)


def _followed(
    known: ReservationState[PolicyState], parameters: ReservationParameters, period: Period
) -> tuple[Reservations, list[Unkept]]:
    """Who is gone, or whose CPUs are, loses what it had; who has come gets what there is."""
    places = _places(period.topology)
    own = {ask.name: ask for ask in parameters.own_asks_of(period)}
    asks = {ask.name: ask for ask in parameters.asks_of(period)} | own
    reach_of = {each.name: _reach(each) & places.keys() for each in period.workloads if each.vcpus}
    kept = [
        grant
        for grant in map(Kept.grant, known.kept)
        if asks.get(grant.ask.name) == grant.ask
        and reach_of[grant.ask.name] >= grant.exclusive.union(cpu for cpu, _ in grant.parts)
    ]
    held = Reservations(places, {grant.ask.name: grant for grant in kept}, parameters.apart)
    if held.needs_pool and not held.pool:
        held = replace(held, grants={})  # CPUs went offline: everybody else needs one
    held = replace(held, apart=parameters.apart and asks.keys() == reach_of.keys())
    allowed_of = {each.name: _allowed(each) for each in period.workloads if each.vcpus}
    unkept: list[Unkept] = []
    for name, ask in asks.items():
        if name in held.grants:
            continue
        after = _beyond_its_rights(held, ask, own, parameters.by_themselves) or allocate(
            held, ask, parameters.principle, allowed_of[name]
        )
        if isinstance(after, Refused):
            unkept.append(Unkept(name, after.why.removeprefix(f"{name}: ")))
        else:
            held = after
    return held, unkept


def _beyond_its_rights(
    held: Reservations, ask: Ask, own: Mapping[str, Ask], most_millicores: int
) -> Refused | None:
    """Why a workload that asks by itself may not have so much; None: it may."""
    taken = sum(grant.ask.reserved_millicores for name, grant in held.grants.items() if name in own)
    if ask.name not in own or taken + ask.reserved_millicores <= most_millicores:
        return None
    left = cpus(max(0, most_millicores - taken))
    return Refused(f"{ask.name}: asks for {cpus(ask.reserved_millicores)} by itself, and may have {left}")


def _places(topology: Topology) -> Mapping[int, CpuPlace]:
    return {
        core: CpuPlace(topology.node_of.get(core, 0), topology.whole_of.get(core, core))
        for core in topology.cores
    }


def _allowed(workload: Workload) -> frozenset[int]:
    """The CPUs that each of its vCPUs may use."""
    return frozenset.intersection(*(vcpu.allowed for vcpu in workload.guests_own or workload.vcpus))


def _reach(workload: Workload) -> frozenset[int]:
    """The CPUs that any of its vCPUs may use: one that its cpuset has lost none of them can. What a single
    thread gives up by a mask of its own the others keep."""
    return frozenset[int]().union(*(vcpu.allowed for vcpu in workload.guests_own or workload.vcpus))


def _aims(held: Reservations, period: Period) -> Mapping[str, frozenset[Core]]:
    """The CPUs of each workload; of none where nobody has CPUs of its own."""
    if not any(grant.ask.is_apart for grant in held.grants.values()):
        return {}
    return {
        each.name: frozenset(map(Core, held.cpus_of(each.name) if each.name in held.grants else held.shared))
        for each in period.workloads
    }


def _confined(period: Period, aims: Mapping[str, frozenset[Core]]) -> Period:
    """As the inner policy sees it: nobody may use more than it has."""
    if not aims:
        return period
    workloads = tuple(
        replace(each, vcpus=tuple(_within(vcpu, aims[each.name]) for vcpu in each.vcpus))
        for each in period.workloads
    )
    return replace(period, workloads=workloads)


def _within(vcpu: Vcpu, cpus: frozenset[Core]) -> Vcpu:
    return vcpu._replace(allowed=vcpu.allowed & cpus or vcpu.allowed)


@dataclass(slots=True)
class _Masks:
    """The masks of all whose present ones are not right. Those of the policy's that lie within a workload's
    CPUs stay; what was aimed at before is replaced by what is now, until nobody is left there."""

    former: Sequence[Aim]
    held: Reservations
    wanted: Mapping[str, frozenset[Core]]
    knobs: dict[VcpuId, Knobs] = field(default_factory=dict)
    reasons: list[Reason] = field(default_factory=list)
    aims: list[Aim] = field(default_factory=list)
    astray: list[Unkept] = field(default_factory=list)

    def add(self, workload: Workload, present_of: Mapping[VcpuId, Knobs], decision: Decision) -> None:
        """Those of one workload."""
        aim = self.wanted.get(workload.name)
        former = [each for each in self.former if each.workload == workload.name]
        if aim is None and not former:
            return
        if not aim and aim is not None:
            self.astray.append(Unkept(workload.name, "all CPUs are reserved by others, and it runs on them"))
            self.aims += former
            return
        left: set[Aim] = set()
        for vcpu in workload.guests_own:  # QEMU's own threads stay where its operator has them
            mask = vcpu.allowed if aim is None else vcpu.allowed & aim
            present = present_of.get(vcpu.id, NO_KNOBS).affinity
            if present is None or not mask:
                self._miss(workload, vcpu, aim)
                continue
            still = [each for each in former if present == vcpu.allowed.intersection(each.cpus) != mask]
            left.update(still)
            wish = decision.knobs.get(vcpu.id, NO_KNOBS)
            if wish.affinity is None and (still or not present <= mask):
                self.knobs[vcpu.id] = wish._replace(affinity=mask)
                self.reasons.append(
                    Reason(vcpu.id, Knob.AFFINITY, self._rule(workload), (("cpus", len(mask)),))
                )
        now = () if aim is None else (Aim(workload.name, tuple(sorted(aim))),)
        self.aims += dict.fromkeys((*(each for each in former if each in left), *now))

    def _rule(self, workload: Workload) -> str:
        grant = self.held.grants.get(workload.name)
        return "reserve.own" if grant is not None and grant.ask.is_apart else "reserve.shared"

    def _miss(self, workload: Workload, vcpu: Vcpu, aim: frozenset[Core] | None) -> None:
        """One that cannot be moved, and should be."""
        if aim is not None and not vcpu.allowed <= aim:
            why = f"{vcpu.name} (thread {vcpu.id.tid}) may run elsewhere, and its mask is not ours to change"
            self.astray.append(Unkept(workload.name, why))
