"""While a workload's limit binds, those that nobody waits for get caps, so that the others never stop.

A limit binds when threads are throttled or nine tenths of it are used; with caps in force also when a cap
throttles. What is reserved for the others (reserve.py) and what the capped may use is the limit, so that the
kernel's own enforcement, which stops everybody at once, never comes into it. Whoever cannot be capped counts
as one of the others.

Each change of the level costs a token, because each write of a quota hands out a new one. To take caps away
costs none: "no limit" hands out nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from ..model import CORE_PPM, IDLE, Knob, Limits, Period, Reason, VcpuId, Workload, WorkloadKnobs
from .level import level_ppm
from .rates import LEAST_PPM, used_ppm
from .reserve import MARGIN_PERMILLE, Reserve, Use, followed

BINDS_PERCENT = 90
"""Of the limit: from such a use on it binds, although nobody has been throttled yet."""

MAKING_UP_NS = 2_000_000_000
"""For so long who was waited for counts as such while the limit has hidden what it wants, or while nobody is
found at all: who has a backlog never sleeps, so nobody wakes it, as if nobody waited. Longer would be the
time of somebody who only computes. In a guest all caps went two thirds of a second after a step, although the
limit stopped nobody by then (experiments/studies/caps)."""

WORTH_PERCENT = 1
"""Of the limit: if those that could be capped use less, caps would give nobody time. Where there is no
critical path to see, and nobody answers anybody outside, all that compute count as waited for (SILENT in
critical/scores.py): then only a sleeping thread was left to cap, and its cap was written again and again
(tests/host/test_limits_kept.py)."""

LOOSE_LOOKS = 2
"""So many looks in a row at which it does not bind, and the caps go."""

HUNGRY_PERCENT = 90
"""Of its cap: who used more, or was throttled, would use a whole core."""

BAND_PERMILLE = 4
"""Of the limit: by less a budget is not worth a write."""

STEP_PERMILLE = 50
"""Of the limit: a budget that is off by so much is a step, and takes a spared token, down as well as up. In a
guest the guess after a backlog was over, and the background waited for its part until there were four tokens
again, for a second and a half (docs/measurements.md, "Limits and caps")."""

SPARED = 3
"""Of the tokens: for who has no cap yet, and for steps. In a guest the last one was gone when the step came,
and those that are waited for were stopped as without caps (experiments/studies/caps)."""

TOKENS = 10
TOKEN_NS = 1_000_000_000
"""At most ten changes of the level at once, and one more a second: of a limit of two cores and periods of
10 ms that hands out 0.8 % at most, out of the reserve: the limit itself is the kernel's
(docs/measurements.md, "Limits and caps")."""


class CapMemory(NamedTuple):
    """What is remembered of one workload. `budget_ppm`: what the capped may use, 0 without caps. `earned_ns`:
    time towards tokens. `loose`: looks in a row at which the limit did not bind. `served`: who was waited
    for, and `hidden_ns`: for how long that has only been remembered."""

    workload: str
    reserve: Reserve | None
    budget_ppm: int = 0
    level_ppm: int = 0
    loose: int = 0
    earned_ns: int = TOKENS * TOKEN_NS
    served: tuple[VcpuId, ...] = ()
    hidden_ns: int = 0


class Capped(NamedTuple):
    """The caps that should be in force, of those that have others now (None: no cap), and what is remembered;
    None: nothing."""

    wanted: Mapping[VcpuId, int]
    holding: CapMemory | None


class Capping(NamedTuple):
    """The caps that should change in all workloads, why, and what is remembered."""

    wanted: Mapping[str, WorkloadKnobs]
    reasons: tuple[Reason, ...]
    holdings: tuple[CapMemory, ...]


NO_CAPS = Capping({}, (), ())
NOBODY: frozenset[VcpuId] = frozenset()


class _Use(NamedTuple):
    """What they used, in millionths of a core: those to be capped, each, and the others together; and for how
    long those to be capped waited for a core."""

    capped: Mapping[VcpuId, int]
    others_ppm: int
    waited: Mapping[VcpuId, int]


def caps_of_all(
    period: Period, waited_for: Mapping[str, Collection[VcpuId]], before: Sequence[CapMemory]
) -> Capping:
    """The caps of all workloads after a period. `waited_for`: the critical vCPUs of each."""
    if not period.limits and not before:
        return NO_CAPS
    holdings_of = {holding.workload: holding for holding in before}
    wanted: dict[str, WorkloadKnobs] = {}
    reasons: list[Reason] = []
    holdings: list[CapMemory] = []
    for workload in period.workloads:
        name = workload.name
        if name in period.limits and period.limits[name].is_divided:
            continue  # loans.py
        capped = caps_after(period, workload, waited_for.get(name, NOBODY), holdings_of.get(name))
        if capped.holding:
            holdings.append(capped.holding)
        if capped.wanted:
            wanted[name] = WorkloadKnobs(capped.wanted)
        reasons += _reasons(period.limits.get(name), capped)
    return Capping(wanted, tuple(reasons), tuple(holdings))


def _reasons(limits: Limits | None, capped: Capped) -> Iterator[Reason]:
    for vcpu, ppm in capped.wanted.items():
        reserve = capped.holding.reserve if capped.holding else None
        seen = (
            ("limit_ppm", limits.around_ppm if limits else 0),
            ("throttled_ns", limits.throttled_ns if limits else 0),
            ("reserved_ppm", reserve.kept_ppm if reserve else 0),
        )
        yield Reason(vcpu, Knob.CAP, "bandwidth.cap" if ppm else "bandwidth.free", seen)


def caps_after(
    period: Period, workload: Workload, waited_for: Collection[VcpuId], before: CapMemory | None
) -> Capped:
    """The caps of one workload after a period. `waited_for`: its critical vCPUs."""
    limits = period.limits.get(workload.name)
    if limits is None or not limits.around_ppm:
        return _none(limits, before)
    limit_ppm = limits.around_ppm
    held = _served(period, limits, waited_for, before or CapMemory(workload.name, None))
    use = _use(period, workload, limits, held.served)
    earned_ns = min(TOKENS * TOKEN_NS, held.earned_ns + period.length_ns)
    held = held._replace(earned_ns=earned_ns)
    if not use.capped or len(use.capped) == len(workload.guests_own):
        return _none(limits, held)
    if not held.budget_ppm and sum(use.capped.values()) * 100 < limit_ppm * WORTH_PERCENT:
        return _none(limits, held)
    if not _binds(limits, use, limit_ppm):
        held = held._replace(loose=held.loose + 1)
        if held.loose >= LOOSE_LOOKS or not held.budget_ppm:
            return _none(limits, held)
    else:
        held = held._replace(loose=0)
    stopped_ppm = used_ppm(limits.throttled_ns, period.length_ns)
    most_ppm = CORE_PPM * (len(workload.vcpus) - len(use.capped))
    room_ppm = limit_ppm * (1000 - MARGIN_PERMILLE) // 1000 - LEAST_PPM * len(use.capped)
    seen = Use(use.others_ppm, stopped_ppm, min(most_ppm, room_ppm))
    reserve = followed(held.reserve, seen, limit_ppm, period.length_ns)
    return _level(limits, use, limit_ppm, held._replace(reserve=reserve))


def _served(period: Period, limits: Limits, waited_for: Collection[VcpuId], held: CapMemory) -> CapMemory:
    """Who counts as waited for: also those of the look before, while stops hide what they want or nobody is
    found at all."""
    is_hidden = held.reserve is not None and (
        held.reserve.is_guess or limits.throttled_ns > 0 or not waited_for
    )
    there = period.usage.keys()
    kept = [vcpu for vcpu in held.served if vcpu not in waited_for and vcpu in there]
    if not (kept and is_hidden and held.hidden_ns < MAKING_UP_NS):
        return held._replace(served=tuple(sorted(waited_for)), hidden_ns=0)
    served = tuple(sorted({*waited_for, *kept}))
    return held._replace(served=served, hidden_ns=held.hidden_ns + period.length_ns)


def _level(limits: Limits, use: _Use, limit_ppm: int, held: CapMemory) -> Capped:
    """Caps for what is left of the limit."""
    assert held.reserve is not None, "it follows the use"
    budget_ppm = limit_ppm - held.reserve.kept_ppm
    demands = [_demand_ppm(limits, vcpu, use, held.level_ppm) for vcpu in use.capped]
    level = level_ppm(demands, budget_ppm)
    if level >= CORE_PPM or level < LEAST_PPM:
        return _none(limits, held)
    is_new = any(not limits.own[vcpu].present_ppm for vcpu in use.capped)
    off = abs(level - held.level_ppm) * len(use.capped) * 1000
    if held.budget_ppm and off <= limit_ppm * BAND_PERMILLE and not is_new:
        return Capped(_released(limits, use), held)
    is_step = abs(budget_ppm - held.budget_ppm) * 1000 > limit_ppm * STEP_PERMILLE
    is_urgent = is_new or is_step or not held.budget_ppm
    if held.earned_ns < TOKEN_NS * (1 if is_urgent else 1 + SPARED):
        return Capped(_released(limits, use), held)
    wanted: dict[VcpuId, int] = dict.fromkeys(use.capped, level)
    changes = {vcpu: cap for vcpu, cap in wanted.items() if cap != limits.own[vcpu].present_ppm}
    held = held._replace(
        budget_ppm=budget_ppm, level_ppm=level, earned_ns=held.earned_ns - (TOKEN_NS if changes else 0)
    )
    return Capped({**_released(limits, use), **changes}, held)


def _use(period: Period, workload: Workload, limits: Limits, waited_for: Collection[VcpuId]) -> _Use:
    capped: dict[VcpuId, int] = {}
    waited: dict[VcpuId, int] = {}
    total_ns = 0
    for vcpu in workload.vcpus:
        used = period.usage.get(vcpu.id, IDLE)
        total_ns += used.consumed_ns
        own = limits.own.get(vcpu.id)
        if own and not own.given_ppm and vcpu.id in period.usage and vcpu.id not in waited_for:
            capped[vcpu.id] = used_ppm(used.consumed_ns, period.length_ns)
            waited[vcpu.id] = used_ppm(used.ready_ns, period.length_ns)
    total_ns = max(total_ns, limits.used_ns)
    others_ppm = max(0, used_ppm(total_ns, period.length_ns) - sum(capped.values()))
    return _Use(capped, others_ppm, waited)


def _binds(limits: Limits, use: _Use, limit_ppm: int) -> bool:
    total_ppm = use.others_ppm + sum(use.capped.values())
    return (
        limits.throttled_ns > 0
        or total_ppm * 100 > limit_ppm * BINDS_PERCENT
        or any(limits.own[vcpu].throttled_ns > 0 for vcpu in use.capped)
    )


def _demand_ppm(limits: Limits, vcpu: VcpuId, use: _Use, level: int) -> int:
    """What it would use without a cap: it is not known of who used up its cap, or waited instead."""
    use_ppm = use.capped[vcpu]
    is_hungry = (use_ppm + use.waited[vcpu]) * 100 >= level * HUNGRY_PERCENT
    return CORE_PPM if is_hungry or limits.own[vcpu].throttled_ns > 0 else use_ppm


def _released(limits: Limits, use: _Use) -> dict[VcpuId, int]:
    """Those that are waited for now and still have a cap lose it."""
    return {vcpu: 0 for vcpu, own in limits.own.items() if own.present_ppm and vcpu not in use.capped}


def _none(limits: Limits | None, held: CapMemory | None) -> Capped:
    """No caps."""
    own = limits.own if limits else {}
    wanted: dict[VcpuId, int] = {vcpu: 0 for vcpu, one in own.items() if one.present_ppm}
    if held is None or (held.earned_ns >= TOKENS * TOKEN_NS and held.reserve is None):
        return Capped(wanted, None)
    held = held._replace(reserve=None, budget_ppm=0, level_ppm=0, loose=0)
    return Capped(wanted, held if held.earned_ns < TOKENS * TOKEN_NS else None)
