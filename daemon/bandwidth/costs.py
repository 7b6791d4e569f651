"""What CPU limits cost: for how long they stopped threads, who used them up, and what caps spared the others.

What would have been without caps is reckoned, not measured: whoever is stopped by a cap would have used a
whole core, so all together would have used up the limit early in its period, and everybody would have been
stopped for the rest of it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple, TypeVar

from ..model import CORE_PPM, IDLE, Limits, Period, VcpuId, Workload
from .rates import used_ppm


class Cost(NamedTuple):
    """Of one workload in one period. `used_up`: what each used while the limit stopped somebody; `own`: for
    how long its own quota or cap stopped each; `spared_ns`: for so long all would have been stopped without
    caps and loans."""

    stopped_ns: int
    used_up: Mapping[VcpuId, int]
    own: Mapping[VcpuId, int]
    spared_ns: int


def cost_of(period: Period, workload: Workload, limits: Limits) -> Cost:
    """What the workload's limits did in a period."""
    used = {vcpu.id: period.usage.get(vcpu.id, IDLE).consumed_ns for vcpu in workload.vcpus}
    return Cost(
        limits.throttled_ns,
        used if limits.throttled_ns else {},
        {vcpu: own.throttled_ns for vcpu, own in limits.own.items() if own.throttled_ns},
        _lent_ns(used, limits, period.length_ns)
        if limits.is_divided
        else _spared_ns(used, limits, period.length_ns),
    )


def _spared_ns(used: Mapping[VcpuId, int], limits: Limits, length_ns: int) -> int:
    """Where all of them would have wanted more than the limit, each has the limit's part of what it wants,
    and is stopped for the rest."""
    if not limits.around_ppm or not any(own.present_ppm for own in limits.own.values()):
        return 0
    capped = {vcpu for vcpu, own in limits.own.items() if own.present_ppm and own.throttled_ns}
    wanted_ppm = sum(
        CORE_PPM if vcpu in capped else used_ppm(used_ns, length_ns) for vcpu, used_ns in used.items()
    )
    if wanted_ppm <= limits.around_ppm:
        return 0
    return max(0, length_ns - length_ns * limits.around_ppm // wanted_ppm - limits.throttled_ns)


def _lent_ns(used: Mapping[VcpuId, int], limits: Limits, length_ns: int) -> int:
    """What borrowers used above the quotas that they were given."""
    return sum(
        max(0, used.get(vcpu, 0) - own.quota_ppm * length_ns // CORE_PPM)
        for vcpu, own in limits.own.items()
        if own.present_ppm > own.quota_ppm
    )


Key = TypeVar("Key")


class Costs:
    """Totals of all limited workloads, in ns."""

    def __init__(self) -> None:
        self._stopped: dict[str, int] = {}
        self._spared: dict[str, int] = {}
        self._own: dict[VcpuId, int] = {}
        self._used_up: dict[VcpuId, int] = {}

    def add(self, period: Period) -> None:
        """Another period."""
        if not period.limits:
            return
        for workload in period.workloads:
            limits = period.limits.get(workload.name)
            if limits is not None:
                cost = cost_of(period, workload, limits)
                _more(self._stopped, {workload.name: cost.stopped_ns})
                _more(self._spared, {workload.name: cost.spared_ns})
                _more(self._own, cost.own)
                _more(self._used_up, cost.used_up)

    def keep(self, present: Collection[VcpuId]) -> None:
        """Forget all other vCPUs."""
        for table in (self._own, self._used_up):
            for vcpu in table.keys() - present:
                del table[vcpu]

    def stopped_ns(self, workload: str) -> int:
        """For how long its limit stopped threads, over all CPUs."""
        return self._stopped.get(workload, 0)

    def spared_ns(self, workload: str) -> int:
        """For how long it would have stopped all without caps and loans."""
        return self._spared.get(workload, 0)

    def own_ns(self, vcpu: VcpuId) -> int:
        """For how long its own quota or cap stopped it."""
        return self._own.get(vcpu, 0)

    def used_up_ns(self, vcpu: VcpuId) -> int:
        """What it used in periods in which the limit stopped somebody."""
        return self._used_up.get(vcpu, 0)

    def parts(self, workload: Workload) -> tuple[tuple[str, int], ...]:
        """Who used the limit up: of what was used while it stopped somebody the percentage of each, most
        first; those below one percent are left out."""
        used = [(vcpu.name, self.used_up_ns(vcpu.id)) for vcpu in workload.vcpus]
        total_ns = sum(used_ns for _, used_ns in used)
        return _largest([(name, 100 * used_ns // total_ns) for name, used_ns in used] if total_ns else [])

    def own_ms(self, workload: Workload) -> tuple[tuple[str, int], ...]:
        """For how long each was stopped by its own quota or cap, most first."""
        return _largest([(vcpu.name, self.own_ns(vcpu.id) // 1_000_000) for vcpu in workload.vcpus])


def _more(table: dict[Key, int], more: Mapping[Key, int]) -> None:
    for key, value in more.items():
        table[key] = table.get(key, 0) + value


def _largest(found: list[tuple[str, int]]) -> tuple[tuple[str, int], ...]:
    return tuple(sorted((one for one in found if one[1]), key=lambda one: -one[1]))


def in_words(shares: Collection[tuple[str, int]], unit: str, most: int) -> str:
    """The first of them.

    >>> in_words((("CPU 0", 50), ("CPU 1", 30), ("CPU 2", 20)), "%", 2)
    'CPU 0 50 %, CPU 1 30 %, …'
    """
    said = [f"{name} {value} {unit}" for name, value in list(shares)[:most]]
    return ", ".join(said + ["…"] * (len(shares) > most))
