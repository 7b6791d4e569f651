"""Who may use how much of a period: entitlement of a workload, slice of a vCPU (§4.2, TSA).

The paper hands "the CPU time assigned to the VM" out to its vCPUs in time slices, by weight. It does not
say what a VM is assigned; here it is the workload's share of all cores that we may use.

**Entitlement.** The cores' time in the period, divided in proportion to the workloads' shares. No workload
gets more than it can use (its vCPUs × the period, and no more cores than they may use) or may use (its
quota). What such a workload leaves over goes to the others in proportion to *their* shares, until everything
is given away or everybody has all they can use (water-filling): whoever reaches the limit with a plain
division gets the limit, the others divide what is left, and so on. QEMU's main thread, where it is managed,
adds nothing to that, and has a slice of it.

Time is time, on a small core and on an SMT sibling, too: that is what the kernel shares (vruntime knows no
capacity), and what others lose (docs/decisions/0056-uneven-cores.md).

**Slice.** Entitlement × weight / sum of weights, at most one period, because a vCPU runs on one core at a
time. What the cut at one period takes away is not given to the siblings: it is unused entitlement, and the
kernel gives unused time to whoever is runnable anyway. A vCPU whose weight is not ours to write counts with
the neutral weight, so that a workload without any weight splits evenly.

**Exhausted.** Consumed at least the slice, within a tolerance of one tick, or a tenth of the slice if that
is less. One tick, because the kernel ends slices at ticks only: a vCPU that used up all it was given can be
one short. A tenth, because that is one step of TSA: a vCPU further from its slice than a step must not be
called exhausted, which a tick of 4 ms would do to any slice below 40 ms.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from .model import IDLE, NEUTRAL_WEIGHT, Core, Knobs, Period, Usage, Vcpu, VcpuId, Workload
from .period import column

TICK_NS = 4_000_000
"""One scheduler tick at 250 Hz, the kernel that we measured (docs/measurements.md, "Machine")."""

TOLERANCE_DIVISOR = 10
"""At most this part of a slice may be missing from an exhausted one: one step of TSA (§4.2: 10%)."""


NOBODY: frozenset[int] = frozenset()
NOWHERE: frozenset[Core] = frozenset()


class Standing(NamedTuple):
    """How one workload stands at the end of a period, in columns: row i of each is the same vCPU.

    `active` are the rows that have usage and did not sleep through, `exhausted` those of them that used up
    their slice. A vCPU that has just come has a row, but no usage.
    """

    workload: Workload
    entitlement_ns: int
    vcpus: Sequence[Vcpu]
    ids: Sequence[VcpuId]
    usage: Sequence[Usage | None]
    knobs: Sequence[Knobs]
    cores: Sequence[Core | None]
    slices_ns: Sequence[int]
    active: Sequence[int]
    exhausted: frozenset[int]


def entitlements_ns(period: Period) -> Mapping[str, int]:
    """The CPU time that each workload may use in the period, by name."""
    length_ns = period.length_ns
    left_ns = len(period.topology.cores) * length_ns
    left_share = sum([workload.share for workload in period.workloads])
    cores = frozenset(period.topology.cores)
    unfilled = [(limit_ns(workload, length_ns, cores), workload) for workload in period.workloads]
    entitled: dict[str, int] = {}
    for _ in period.workloads:
        filled = [(limit, each) for limit, each in unfilled if limit * left_share <= left_ns * each.share]
        if not filled:
            break
        unfilled = [(limit, each) for limit, each in unfilled if limit * left_share > left_ns * each.share]
        for limit, workload in filled:
            entitled[workload.name] = limit
            left_ns -= limit
            left_share -= workload.share
    entitled.update((workload.name, left_ns * workload.share // left_share) for _, workload in unfilled)
    return entitled


def limit_ns(workload: Workload, length_ns: int, cores: frozenset[Core]) -> int:
    """The most that a workload can use in a period: one core for each vCPU, all cores that any of them may
    use, or its quota."""
    vcpus = workload.guests_own
    reach = NOWHERE.union(*{vcpu.allowed for vcpu in vcpus}) & cores
    usable_ns = min(len(vcpus), len(reach)) * length_ns
    return (
        usable_ns if workload.quota_cores is None else min(usable_ns, int(workload.quota_cores * length_ns))
    )


def slices_ns(period: Period, weights: Mapping[VcpuId, int] | None = None) -> Mapping[VcpuId, int]:
    """The slice of each vCPU that is in the period, under its present weight or the one in `weights`."""
    entitled = entitlements_ns(period)
    slices: dict[VcpuId, int] = {}
    for workload in period.workloads:
        ids = [vcpu.id for vcpu in workload.vcpus if vcpu.id in period.knobs]
        present = [period.knobs[vcpu].weight for vcpu in ids]
        if weights:
            present = [weights.get(vcpu, weight) for vcpu, weight in zip(ids, present, strict=True)]
        slices.update(zip(ids, split_ns(entitled[workload.name], present, period.length_ns), strict=True))
    return slices


def split_ns(entitlement_ns: int, weights: Sequence[int | None], length_ns: int) -> list[int]:
    """One workload's entitlement as slices, by weight; None counts as neutral."""
    if not weights:
        return []
    if weights.count(weights[0]) == len(weights):
        return [min(entitlement_ns // len(weights), length_ns)] * len(weights)
    known = [NEUTRAL_WEIGHT if weight is None else weight for weight in weights]
    total = sum(known)
    return [min(entitlement_ns * weight // total, length_ns) for weight in known]


def is_exhausted(consumed_ns: int, slice_ns: int, tick_ns: int = TICK_NS) -> bool:
    """Whether a vCPU used up its slice: consumed ≥ slice, less one tick or a tenth of the slice."""
    missing_ns = slice_ns - consumed_ns
    return missing_ns <= tick_ns and missing_ns * TOLERANCE_DIVISOR <= slice_ns


def standings(period: Period, tick_ns: int = TICK_NS) -> tuple[Standing, ...]:
    """How every workload stands at the end of the period, under the weights that held in it."""
    entitled = entitlements_ns(period)
    members: list[Sequence[Vcpu]] = [workload.vcpus for workload in period.workloads]
    ids = [vcpu.id for vcpus in members for vcpu in vcpus]
    if list(period.knobs) != ids:  # one may have been listed, and gone before its knobs were read
        members = [[vcpu for vcpu in vcpus if vcpu.id in period.knobs] for vcpus in members]
        ids = [vcpu.id for vcpus in members for vcpu in vcpus]
    # All workloads at once: where the tables are in this order, a column is a copy and no lookups.
    knobs = [each for each in column(period.knobs, ids) if each]
    usage = column(period.usage, ids)
    cores = column(period.core_of, ids)
    weights = [each.weight for each in knobs]
    found = []
    stop = 0
    for workload, vcpus in zip(period.workloads, members, strict=True):
        start, stop = stop, stop + len(vcpus)
        entitlement_ns = entitled[workload.name]
        slices = split_ns(entitlement_ns, weights[start:stop], period.length_ns)
        used = usage[start:stop]
        active, exhausted = _judged(used, slices, tick_ns)
        mine = ids[start:stop], used, knobs[start:stop], cores[start:stop]
        found.append(Standing(workload, entitlement_ns, vcpus, *mine, slices, active, exhausted))
    return tuple(found)


def _judged(
    usage: Sequence[Usage | None], slices: Sequence[int], tick_ns: int
) -> tuple[Sequence[int], frozenset[int]]:
    """The rows that did not sleep through, and those of them that exhausted their slice."""
    if usage.count(IDLE) == len(usage):
        return (), NOBODY
    active = [row for row, used in enumerate(usage) if used is not IDLE and used is not None]
    exhausted = [
        row for row in active if (used := usage[row]) and is_exhausted(used.consumed_ns, slices[row], tick_ns)
    ]
    return active, frozenset(exhausted)
