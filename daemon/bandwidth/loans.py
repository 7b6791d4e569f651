"""Where each vCPU has a quota of its own, those that nobody waits for lend to those whose quota binds.

libvirt's `quota` gives each vCPU the same, whoever it is that others wait for. The sum of what is in force is
never above the sum of what was given: first the lenders get less, and only what they were seen to have lost
is lent at a later look, so that a write that fails costs nobody anything. The way back is the same.

Each write of a quota hands out CPU time anew. What that can be is paid out of an account, and a loan that
the account cannot pay waits.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from ..model import CORE_PPM, Knob, Limits, OwnLimit, Period, Reason, VcpuId, Workload, WorkloadKnobs
from .need import Need, needed
from .rates import LEAST_PPM, cap_of, used_ppm

HEADROOM_PERCENT = 200
"""Of its mean use a borrower gets so much, in periods of 10 ms: at 150 % arrivals by chance wait 1.8 times as
long as with a whole core, at 200 % 1.1 times (docs/measurements.md, "Loans")."""

LOOSE_PERCENT = 70
"""Of its own quota: who uses less on average needs no loan."""

KEPT_PERCENT = 50
"""Of its own quota a lender keeps at least so much."""

BAND_PERCENT = 15
"""Of what was given: by less a loan is neither begun nor changed."""

EARNED_PERMILLE, HOARD_PERMILLE = 2, 7
"""Of the sum of the quotas: what is earned for writes all the time, and how much of ten seconds may be saved
up. So in any ten seconds writes hand out less than 1 % of it. Nothing is lent that the account could not take
back: quotas of less than about 0.3 of a core each stay as they are (docs/measurements.md, "Loans")."""

HOARD_NS = 10_000_000_000


class Loans(NamedTuple):
    """What is remembered of one workload: what each borrower needs, and the CPU time that writes may hand
    out."""

    workload: str
    needs: tuple[tuple[VcpuId, Need], ...]
    account_ns: int


class Lending(NamedTuple):
    """The quotas that should change in all workloads (0: as it was given), why, and what is remembered."""

    wanted: Mapping[str, WorkloadKnobs]
    reasons: tuple[Reason, ...]
    loans: tuple[Loans, ...]


NO_LOANS = Lending({}, (), ())
NOBODY: frozenset[VcpuId] = frozenset()


def loans_of_all(
    period: Period, waited_for: Mapping[str, Collection[VcpuId]], before: Sequence[Loans]
) -> Lending:
    """The loans in all workloads after a period. `waited_for`: the critical vCPUs of each."""
    if not before and not any(limits.is_divided for limits in period.limits.values()):
        return NO_LOANS
    known = {one.workload: one for one in before}
    wanted: dict[str, WorkloadKnobs] = {}
    reasons: list[Reason] = []
    remembered: list[Loans] = []
    for workload in period.workloads:
        limits = period.limits.get(workload.name)
        if limits is None or not limits.is_divided:
            continue
        critical = waited_for.get(workload.name, NOBODY)
        changes, after = lent_after(period, workload, limits, critical, known.get(workload.name))
        if changes:
            wanted[workload.name] = WorkloadKnobs(changes)
        reasons += [_reason(vcpu, ppm, limits.own[vcpu]) for vcpu, ppm in changes.items()]
        if after is not None:
            remembered.append(after)
    return Lending(wanted, tuple(reasons), tuple(remembered))


def lent_after(
    period: Period, workload: Workload, limits: Limits, waited_for: Collection[VcpuId], before: Loans | None
) -> tuple[dict[VcpuId, int], Loans | None]:
    """The quotas of one workload that should change after a period, and what is remembered of it."""
    full_ns = limits.given_ppm * HOARD_NS // CORE_PPM * HOARD_PERMILLE // 1000
    earned_ns = limits.given_ppm * period.length_ns // CORE_PPM * EARNED_PERMILLE // 1000
    account_ns = min(full_ns, before.account_ns + earned_ns) if before else full_ns
    needs = _needs(period, limits, waited_for, dict(before.needs) if before else {})
    wanted = targets(limits, needs, waited_for)
    changes = _changes(limits, wanted)
    if (
        changes
        and not _is_over(limits, wanted)
        and _cost_with_return_ns(limits, wanted, changes) > account_ns
    ):
        changes = {}
    changes = _one_after_the_other(limits, changes)
    account_ns -= sum(_cost_ns(limits.own[vcpu].present_ppm, ppm) for vcpu, ppm in changes.items())
    is_idle = not needs and not changes and account_ns >= full_ns
    return changes, None if is_idle else Loans(workload.name, tuple(needs.items()), account_ns)


def targets(
    limits: Limits, needs: Mapping[VcpuId, Need], waited_for: Collection[VcpuId]
) -> dict[VcpuId, int]:
    """The quota of each: those that need more than they were given get it from those that nobody waits for,
    of whom each lends the same part. The sum stays, but for what rounding loses."""
    most_ppm = min(CORE_PPM, limits.around_ppm or CORE_PPM)
    given = {vcpu: own.quota_ppm for vcpu, own in limits.own.items()}
    asked = {
        vcpu: max(0, min(most_ppm, need.mean_ppm * HEADROOM_PERCENT // 100) - given[vcpu])
        for vcpu, need in needs.items()
        if need.binds
    }
    spare = {
        vcpu: max(0, ppm - max(LEAST_PPM, ppm * KEPT_PERCENT // 100))
        for vcpu, ppm in given.items()
        if vcpu not in waited_for
    }
    asked_ppm, spare_ppm = sum(asked.values()), sum(spare.values())
    lent_ppm = min(asked_ppm, spare_ppm)
    if not lent_ppm:
        return given
    more = {vcpu: ppm * lent_ppm // asked_ppm for vcpu, ppm in asked.items()}
    less = {vcpu: -(-ppm * lent_ppm // spare_ppm) for vcpu, ppm in spare.items()}
    return {vcpu: ppm + more.get(vcpu, 0) - less.get(vcpu, 0) for vcpu, ppm in given.items()}


def _needs(
    period: Period, limits: Limits, waited_for: Collection[VcpuId], before: Mapping[VcpuId, Need]
) -> dict[VcpuId, Need]:
    """What those that somebody waits for need, from the first stop until they need no more than was given."""
    needs: dict[VcpuId, Need] = {}
    for vcpu, own in limits.own.items():
        used = period.usage.get(vcpu)
        if used is None or vcpu not in waited_for or not (own.throttled_ns or vcpu in before):
            continue
        use_ppm = used_ppm(used.consumed_ns, period.length_ns)
        stopped_ppm = used_ppm(own.throttled_ns, period.length_ns)
        need = needed(before.get(vcpu), use_ppm, stopped_ppm, own.quota_ppm, period.length_ns)
        if need.stopped or need.mean_ppm * 100 > own.quota_ppm * LOOSE_PERCENT:
            needs[vcpu] = need
    return needs


def _changes(limits: Limits, wanted: Mapping[VcpuId, int]) -> dict[VcpuId, int]:
    """Those that differ from what is in force; none while all of them are about right."""
    now = {vcpu: own.present_ppm or own.quota_ppm for vcpu, own in limits.own.items()}
    differ = {
        vcpu: 0 if ppm == limits.own[vcpu].quota_ppm else ppm
        for vcpu, ppm in wanted.items()
        if ppm != now[vcpu]
    }
    if _is_over(limits, wanted) or any(
        abs(wanted[vcpu] - now[vcpu]) * 100 > limits.own[vcpu].quota_ppm * BAND_PERCENT for vcpu in differ
    ):
        return differ
    return {}


def _is_over(limits: Limits, wanted: Mapping[VcpuId, int]) -> bool:
    return all(ppm == limits.own[vcpu].quota_ppm for vcpu, ppm in wanted.items())


def _one_after_the_other(limits: Limits, changes: Mapping[VcpuId, int]) -> dict[VcpuId, int]:
    """All that fall; or, once they have fallen, those that rise, as far as there is room."""
    now = {vcpu: own.present_ppm or own.quota_ppm for vcpu, own in limits.own.items()}
    rise = {vcpu: (ppm or limits.own[vcpu].quota_ppm) - now[vcpu] for vcpu, ppm in changes.items()}
    fall = {vcpu: changes[vcpu] for vcpu, by_ppm in rise.items() if by_ppm < 0}
    if fall:
        return fall
    room_ppm = limits.given_ppm - sum(now.values())
    risen: dict[VcpuId, int] = {}
    for vcpu, by_ppm in rise.items():
        got_ppm = min(by_ppm, room_ppm)
        room_ppm -= got_ppm
        if got_ppm == by_ppm:
            risen[vcpu] = changes[vcpu]
        elif got_ppm * 100 > limits.own[vcpu].quota_ppm * BAND_PERCENT:
            risen[vcpu] = now[vcpu] + got_ppm
    return risen


def _cost_with_return_ns(limits: Limits, wanted: Mapping[VcpuId, int], changes: Mapping[VcpuId, int]) -> int:
    """Of these writes, and later of those that end all loans: those must never have to wait."""
    return sum(_cost_ns(limits.own[vcpu].present_ppm, ppm) for vcpu, ppm in changes.items()) + sum(
        _cost_ns(ppm, 0) for vcpu, ppm in wanted.items() if ppm != limits.own[vcpu].quota_ppm
    )


def _cost_ns(present_ppm: int, ppm: int) -> int:
    """What a write may hand out: the new quota, or, with the quota that was given, all of a core until the
    period ends that runs in the kernel (tg_set_cfs_bandwidth() refills, and leaves the timer as it is)."""
    if ppm:
        return cap_of(ppm).quota_us * 1000
    return cap_of(present_ppm).period_us * 1000 if present_ppm else 0


def _reason(vcpu: VcpuId, ppm: int, own: OwnLimit) -> Reason:
    seen = (
        ("given_ppm", own.quota_ppm),
        ("in_force_ppm", own.present_ppm),
        ("throttled_ns", own.throttled_ns),
    )
    if not ppm:
        return Reason(vcpu, Knob.CAP, "bandwidth.returned", seen)
    return Reason(vcpu, Knob.CAP, "bandwidth.borrow" if ppm > own.quota_ppm else "bandwidth.lend", seen)
