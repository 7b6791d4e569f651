"""What one line of the record holds: a Period and all that came of it, as JSON.

A record is a header and then one line a period. A line is sparse: sleepers' usage, knobs
and cores as in the line before, and workloads that did not change are left out. The first
line after a header leaves nothing out, so a file can be read from any header on.
vCPUs are numbered in the order of the workloads; `[pid, tid, start_ticks]` names one that
is not among them. docs/record.md describes every key.

Each line ends in a checksum of itself and of the lines before it, back to the header: a
changed, lost or swapped line shows even where it would not have changed a decision.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import NamedTuple, TypedDict, TypeVar, cast

from ..budget import Outlay
from ..linux import cpulist
from ..linux.printable import printable
from ..model import (
    IDLE,
    Change,
    Core,
    CpuWish,
    Decision,
    Knobs,
    KnobValue,
    Limits,
    OwnLimit,
    Period,
    PolicyState,
    Result,
    ThreadState,
    Topology,
    Usage,
    Vcpu,
    VcpuId,
    Workload,
)
from .shape import wrong_key

SCHEMA = 2
"""Raised when a line changes its meaning."""

READABLE = (1, SCHEMA)
"""What `dasec replay` reads. 2 has more columns of usage, and of the state only what its policy shows."""

T = TypeVar("T")
NOTHING = object()

Ref = int | VcpuId | Sequence[int]
"""A vCPU in a line: its number among the workloads' vCPUs, or all of its identity."""

UNCOUNTED: list[int | None] = [None, None, None, None]
"""All wake-ups, external ones, the time in chains and outward ones, where the host counts none of them."""

UsageRow = tuple[int, int, int, int, str, int, list[tuple[Ref, int]], *tuple[int | None, ...]]
"""vCPU, consumed ns, ready ns, dispatches, state, conflicts, wakers, and what a host may not count."""

KnobsRow = tuple[int | None, int | None, list[Core] | None]
"""Weight, rescheduling latency in ns, affinity."""


LimitsRow = tuple[int, int, int, list[tuple[Ref, int, int, int]]]
"""The limit in millionths of a core, ns used and throttled of it; and vCPU, what of ours is in force, ns
throttled by its own quota, and the quota that it was given."""


class Stages(NamedTuple):
    """How long each stage of one period took. Of recording, the period before: a line cannot
    tell how long its own writing takes."""

    observe_ns: int = 0
    decide_ns: int = 0
    apply_ns: int = 0
    record_ns: int = 0


class PeriodLine(TypedDict, total=False):
    """The keys of one period's line; `json.loads` gives lists for the tuples."""

    period: int
    clock_ns: int
    length_ns: int
    late_periods: int
    topology: Mapping[str, object]
    workloads: list[Mapping[str, object]]
    usage: list[Sequence[object]]
    unjudged: list[int]
    knobs: list[tuple[int, KnobsRow | None]]
    cores: list[tuple[int, Core | None]]
    limits: Mapping[str, LimitsRow]
    unwatched: bool
    decision: Mapping[str, object]
    results: list[Sequence[object]]
    violations: Sequence[str]
    held: Sequence[Sequence[object]]
    stages_ns: Mapping[str, int]
    cpu_ns: int
    rest: int


@dataclass(frozen=True, slots=True)
class VcpuOrder:
    """The vCPUs of a period in the order of its workloads, and each one's number."""

    order: tuple[VcpuId, ...]
    numbers: Mapping[VcpuId, int]

    @staticmethod
    def of(workloads: Iterable[Workload]) -> VcpuOrder:
        """The layout that `workloads` give."""
        order = tuple(vcpu.id for workload in workloads for vcpu in workload.vcpus)
        return VcpuOrder(order, {vcpu: number for number, vcpu in enumerate(order)})

    def ref(self, vcpu: VcpuId) -> Ref:
        """How a line names `vcpu`."""
        return self.numbers.get(vcpu, vcpu)

    def vcpu(self, ref: Ref) -> VcpuId:
        """Whom a line means by `ref`."""
        return self.order[ref] if isinstance(ref, int) else VcpuId(*ref)


EMPTY_LAYOUT = VcpuOrder((), {})


class Entry(NamedTuple):
    """Everything that one line tells."""

    clock_ns: int
    late_periods: int
    period: Period
    decision: Decision
    results: Sequence[Result]
    violations: Sequence[str]
    stages: Stages
    outlay: Outlay = Outlay()


def in_order(values: Mapping[VcpuId, T], order: tuple[VcpuId, ...]) -> list[T | None]:
    """The value of each vCPU, None where there is none.

    Hosts keep the order of the workloads; then nothing is hashed, which on a busy host, whose caches
    the workloads have emptied, is most of the work (docs/overhead.md).
    """
    if tuple(values) == order:
        return list(values.values())
    return list(map(values.get, order))


def topology_row(topology: Topology) -> Mapping[str, object]:
    """A topology as a line holds it."""
    row: dict[str, object] = {
        "cores": topology.cores,
        "nodes": [topology.node_of[core] for core in topology.cores],
    }
    for name, table in (("capacities", topology.capacity_of), ("wholes", topology.whole_of)):
        if table:
            row[name] = [table.get(core) for core in topology.cores]
    return row


def workload_row(workload: Workload) -> Mapping[str, object]:
    """A workload as a line holds it."""
    row: dict[str, object] = {
        "name": workload.name,
        "share": workload.share,
        "quota_cores": workload.quota_cores,
        "nested": workload.nested,
        "vcpus": [(*vcpu.id, vcpu.name, cpulist.render(vcpu.allowed)) for vcpu in workload.vcpus],
    }
    if emulators := [number for number, vcpu in enumerate(workload.vcpus) if vcpu.emulator]:
        row["emulators"] = emulators
    return row if workload.wish is None else {**row, "wish": workload.wish}


def knobs_row(knobs: Knobs) -> KnobsRow:
    """A vCPU's knobs as a line holds them."""
    return (*knobs[:2], None if knobs.affinity is None else sorted(knobs.affinity))


def decision_row(decision: Decision, layout: VcpuOrder, before: PolicyState | None) -> Mapping[str, object]:
    """A decision as a line holds it; of the state, the fields that differ from the state `before`.

    A field with the metadata `shown=False` is in headers only: it is large, changes in every period, and
    a replay has it anyway.
    """
    row: dict[str, object] = {
        "knobs": [(layout.ref(vcpu), *knobs_row(knobs)) for vcpu, knobs in decision.knobs.items()],
        "reasons": [
            (layout.ref(vcpu), knob._value_, rule, inputs) for vcpu, knob, rule, inputs in decision.reasons
        ],
    }
    if decision.workloads:
        all_caps = (each.caps.items() for each in decision.workloads.values())
        row["caps"] = [(layout.ref(vcpu), ppm) for caps in all_caps for vcpu, ppm in caps]
    if decision.state is not before:
        changed = state_row(decision.state, before)
        if changed:
            row["state"] = changed
    return row


def state_row(state: PolicyState, before: object) -> Mapping[str, object]:
    """The shown fields that differ from `before`; of a state within the state, in the same way."""
    changed: dict[str, object] = {}
    for one in fields(state):
        value, old = getattr(state, one.name), getattr(before, one.name, NOTHING)
        if value is old or not one.metadata.get("shown", True):
            continue
        if isinstance(value, PolicyState):
            value = state_row(value, old)
            if value:
                changed[one.name] = value
        elif value != old:
            changed[one.name] = value
    return changed


def limits_row(limits: Limits, layout: VcpuOrder) -> LimitsRow:
    """A workload's limits as a line holds them."""
    around_ppm, used_ns, throttled_ns, own = limits
    return (around_ppm, used_ns, throttled_ns, [(layout.ref(vcpu), *one) for vcpu, one in own.items()])


def change_row(change: Change, layout: VcpuOrder) -> list[object]:
    """A change as a line holds it: who, what, from, to, by which rule."""
    return [
        layout.ref(change.vcpu),
        change.knob._value_,
        _value_row(change.prior),
        _value_row(change.new),
        change.rule,
    ]


def shown(result: Result) -> Result:
    """As it may be recorded and shown: the detail may quote what somebody called a group."""
    return result._replace(detail=printable(result.detail)) if result.detail else result


def result_row(result: Result, layout: VcpuOrder) -> list[object]:
    """A change and what became of it as a line holds them."""
    row = [*change_row(result.change, layout), result.outcome._value_]
    return [*row, result.detail] if result.detail else row


def _value_row(value: KnobValue) -> object:
    return value if isinstance(value, int) else sorted(value)


class Decoder:
    """Turns period lines back into exactly the Periods that they were made from."""

    def __init__(self) -> None:
        self._topology: Topology | None = None
        self._workloads: tuple[Workload, ...] = ()
        self.layout = EMPTY_LAYOUT
        self._knobs: list[Knobs | None] = []
        self._cores: list[Core | None] = []

    def period(self, body: bytes) -> tuple[Period, PeriodLine]:
        """The Period of a line, and the line. KeyError, ValueError and the like: not a period line."""
        content = json.loads(body)
        if (key := wrong_key(content)) is not None:
            raise ValueError(f"{key!r} is missing or not of its form" if key else "no object")
        line = cast(PeriodLine, content)
        if "topology" in line:
            self._topology = read_topology(line["topology"])
        if "workloads" in line:
            self._workloads = tuple(read_workload(row) for row in line["workloads"])
            self.layout = VcpuOrder.of(self._workloads)
            self._knobs = [None] * len(self.layout.order)
            self._cores = [None] * len(self.layout.order)
        for number, row in line.get("knobs", ()):
            self._knobs[number] = row and read_knobs(row)
        for number, core in line.get("cores", ()):
            self._cores[number] = core
        if self._topology is None:
            raise ValueError("no topology in this line or before it")
        order = self.layout.order
        period = Period(
            index=line["period"],
            length_ns=line["length_ns"],
            topology=self._topology,
            workloads=self._workloads,
            usage=self._usage(line),
            knobs={vcpu: knobs for vcpu, knobs in zip(order, self._knobs, strict=True) if knobs is not None},
            core_of={vcpu: core for vcpu, core in zip(order, self._cores, strict=True) if core is not None},
            limits={name: self._limits(row) for name, row in line.get("limits", {}).items()},
            unwatched=line.get("unwatched", False),
        )
        return period, line

    def _limits(self, row: LimitsRow) -> Limits:
        around_ppm, used_ns, throttled_ns, own = row
        capped = {self.layout.vcpu(ref): OwnLimit(*one) for ref, *one in own}
        return Limits(around_ppm, used_ns, throttled_ns, capped)

    def _usage(self, line: PeriodLine) -> Mapping[VcpuId, Usage]:
        usage = dict.fromkeys(self.layout.order, IDLE)
        for number in line.get("unjudged", ()):
            del usage[self.layout.order[number]]
        rows = cast(list[UsageRow], line["usage"])
        for number, consumed_ns, ready_ns, dispatches, state, conflicts, wakers, *counted in rows:
            usage[self.layout.order[number]] = Usage(
                consumed_ns,
                ready_ns,
                dispatches,
                ThreadState(state),
                conflicts,
                tuple((self.layout.vcpu(waker), count) for waker, count in wakers),
                *counted,
            )
        return usage


def read_topology(row: Mapping[str, object]) -> Topology:
    """The inverse of `topology_row`."""
    cores = tuple(cast(list[Core], row["cores"]))
    tables = (cast(list[int | None], row.get(name, [])) for name in ("nodes", "capacities", "wholes"))
    nodes, *others = (
        {core: number for core, number in zip(cores, table, strict=bool(table)) if number is not None}
        for table in tables
    )
    return Topology(cores, nodes, *others)


def read_workload(row: Mapping[str, object]) -> Workload:
    """The inverse of `workload_row`."""
    vcpus = cast(list[tuple[int, int, int, str, str]], row["vcpus"])
    wish = cast(tuple[str, int] | None, row.get("wish"))
    emulators = cast(list[int], row.get("emulators", []))
    return Workload(
        name=cast(str, row["name"]),
        share=cast(int, row["share"]),
        vcpus=tuple(
            Vcpu(VcpuId(pid, tid, start), name, frozenset(map(Core, cpulist.parse(allowed))), at in emulators)
            for at, (pid, tid, start, name, allowed) in enumerate(vcpus)
        ),
        quota_cores=cast(float | None, row["quota_cores"]),
        nested=cast(bool, row.get("nested", False)),
        wish=None if wish is None else CpuWish(*wish),
    )


def read_knobs(row: KnobsRow) -> Knobs:
    """The inverse of `knobs_row`."""
    return Knobs(row[0], row[1], None if row[2] is None else frozenset(row[2]))
