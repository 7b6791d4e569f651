"""Running totals of everything that was seen and done: what counters and histograms are made of."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping

from ..bandwidth.costs import Costs
from ..model import IDLE, Knob, Knobs, Limits, Outcome, Usage, Vcpu, VcpuId, Workload
from ..record.entries import Entry, Stages, VcpuOrder, in_order
from .exposition import WAIT_BOUNDS_NS, Buckets, labels

STAGES = tuple(name.removesuffix("_ns") for name in Stages._fields)


class VcpuTotals:
    """One vCPU since it was seen first. `waits` are counts by how long a wait for a core was: of the
    dispatches of a period, the mean."""

    __slots__ = (
        *("workload", "given", "buckets", "libvirt", "consumed_ns", "ready_ns", "conflicts"),
        *("chain_ns", "waits", "_unanswered_ns", "rendered_ready_ns"),
    )

    def __init__(self, workload: Workload, vcpu: Vcpu) -> None:
        self.workload = workload.name
        self.given = labels(workload=workload.name, vcpu=vcpu.name, tid=str(vcpu.id.tid))
        self.buckets = Buckets(self.given)
        self.libvirt = libvirt_labels(workload.name, vcpu.name)
        self.consumed_ns = self.ready_ns = self.conflicts = self._unanswered_ns = self.rendered_ready_ns = 0
        self.chain_ns: int | None = None
        self.waits = [0] * (len(WAIT_BOUNDS_NS) + 1)

    def add(self, used: Usage) -> None:
        """Another period."""
        ready_ns, dispatches = used.ready_ns, used.dispatches
        self.consumed_ns += used.consumed_ns
        self.ready_ns += ready_ns
        self.conflicts += used.conflicts
        if used.chain_ns is not None:
            self.chain_ns = (self.chain_ns or 0) + used.chain_ns
        self._unanswered_ns += ready_ns
        if dispatches:
            self.waits[bisect_left(WAIT_BOUNDS_NS, self._unanswered_ns / dispatches)] += dispatches
            self._unanswered_ns = 0


def libvirt_labels(workload: str, vcpu: str) -> str | None:
    """As prometheus-libvirt-exporter labels a vCPU, where QEMU's name of the thread says which one it is."""
    name, slash, _ = vcpu.partition("/")
    number = name.removeprefix("CPU ")
    return labels(domain=workload, vcpu=number) if slash and number.isdecimal() and number != name else None


class Totals:
    """All totals; a witness adds every period to them."""

    def __init__(self) -> None:
        self.periods = self.late_periods = self.violations = self.clock_ns = self.cores = 0
        self.watched_ns = 0
        """For how long wake-ups were followed: what is known of them is of that time."""
        self.rules: Counter[str] = Counter()
        self.writes: Counter[tuple[Knob, Outcome]] = Counter()
        self.stages = {name: [0] * (len(WAIT_BOUNDS_NS) + 1) for name in STAGES}
        self.stage_ns: Counter[str] = Counter()
        self.workloads: tuple[Workload, ...] = ()
        self.limits: Mapping[str, Limits] = {}
        self.costs = Costs()
        self.knobs: list[Knobs | None] = []
        self._order: tuple[VcpuId, ...] = ()
        self._of: dict[VcpuId, VcpuTotals] = {}
        self._gone_consumed_ns: Counter[str] = Counter()
        self._gone_ready_ns: Counter[str] = Counter()

    def limited(self) -> list[tuple[VcpuId, VcpuTotals]]:
        """Those of workloads that have a limit."""
        return [(vcpu, totals) for vcpu, totals in self._of.items() if totals.workload in self.limits]

    @property
    def vcpus(self) -> list[VcpuTotals]:
        """Each vCPU's totals, in the order of the workloads."""
        return list(self._of.values())

    def by_workload(self) -> tuple[Mapping[str, int], Mapping[str, int]]:
        """What each workload's vCPUs ran and waited for a core, in ns, those that are gone included. Summed
        when it is asked for, because no period needs it."""
        consumed_ns, ready_ns = Counter(self._gone_consumed_ns), Counter(self._gone_ready_ns)
        for each in self._of.values():
            consumed_ns[each.workload] += each.consumed_ns
            ready_ns[each.workload] += each.ready_ns
        return consumed_ns, ready_ns

    def add(self, entry: Entry) -> None:
        """Another period."""
        period = entry.period
        self.periods += 1
        self.late_periods = entry.late_periods
        self.violations += len(entry.violations)
        self.clock_ns = entry.clock_ns
        self.watched_ns += 0 if period.unwatched else period.length_ns
        self.cores = len(period.topology.cores)
        for name, took_ns in zip(STAGES, entry.stages, strict=True):
            self.stages[name][bisect_left(WAIT_BOUNDS_NS, took_ns)] += 1
            self.stage_ns[name] += took_ns
        for change, outcome, _ in entry.results:
            self.writes[change.knob, outcome] += 1
            if outcome is Outcome.APPLIED:
                self.rules[change.rule] += 1
        if period.workloads is not self.workloads:
            self._rearrange(period.workloads)
        for totals, used in zip(self._of.values(), in_order(period.usage, self._order), strict=True):
            if used is not IDLE and used is not None:
                totals.add(used)
        self.knobs = in_order(period.knobs, self._order)
        self.limits = period.limits
        self.costs.add(period)

    def _rearrange(self, workloads: tuple[Workload, ...]) -> None:
        """Who is there now; who was there before, in the same workload, goes on counting."""
        before, self._of = self._of, {}
        for workload in workloads:
            for vcpu in workload.vcpus:
                known = before.get(vcpu.id)
                if known is None or known.workload != workload.name:
                    known = VcpuTotals(workload, vcpu)
                self._of[vcpu.id] = known
        for who, known in before.items():
            if self._of.get(who) is not known:
                self._gone_consumed_ns[known.workload] += known.consumed_ns
                self._gone_ready_ns[known.workload] += known.ready_ns
        for name in self._gone_consumed_ns.keys() - {workload.name for workload in workloads}:
            del self._gone_consumed_ns[name], self._gone_ready_ns[name]
        self.costs.keep(self._of)
        self.workloads, self._order = workloads, VcpuOrder.of(workloads).order
