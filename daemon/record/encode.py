"""Entries become the lines of a record (entries.py). Apart from it, so that who only reads records does not
load pydantic: that is a quarter of what a command like `dasec explain` would take."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic_core import to_json

from ..model import IDLE, Core, Knobs, Period, PolicyState, Topology, VcpuId, Workload
from ..policies import Parameters, written
from .checksum import seal
from .entries import (
    EMPTY_LAYOUT,
    SCHEMA,
    UNCOUNTED,
    Entry,
    PeriodLine,
    Ref,
    VcpuOrder,
    decision_row,
    in_order,
    knobs_row,
    limits_row,
    result_row,
    topology_row,
    workload_row,
)


class Encoder:
    """Turns entries into lines; remembers the line before, to leave out what it already says."""

    def __init__(self) -> None:
        self._topology: Topology | None = None
        self._workloads: tuple[Workload, ...] | None = None
        self._layout = EMPTY_LAYOUT
        self._knobs: list[Knobs | None] = []
        self._cores: list[Core | None] = []
        self._state: PolicyState | None = None
        self._chain = 0

    @classmethod
    def begin(cls, policy: str, parameters: Parameters, state: PolicyState) -> tuple[Encoder, bytes]:
        """An encoder for the lines after a header, and that header."""
        encoder = cls()
        encoder._state = state
        header = {"dasec_record": SCHEMA, "policy": policy, "parameters": written(parameters), "state": state}
        line, encoder._chain = seal(to_json(header), 0)
        return encoder, line

    def line(self, entry: Entry, held: Sequence[Sequence[object]] | None = None) -> bytes:
        """The line of one period; with `held` (provenance.py) one that leaves nothing out."""
        period = entry.period
        line: PeriodLine = {"period": period.index, "clock_ns": entry.clock_ns, "length_ns": period.length_ns}
        if held is not None:
            self._topology, self._workloads, line["held"] = None, None, held
        if entry.late_periods:
            line["late_periods"] = entry.late_periods
        if period.topology != self._topology:
            self._topology = period.topology
            line["topology"] = topology_row(period.topology)
        if period.workloads != self._workloads:
            self._workloads = period.workloads
            self._layout = VcpuOrder.of(period.workloads)
            self._knobs = [None] * len(self._layout.order)
            self._cores = [None] * len(self._layout.order)
            line["workloads"] = [workload_row(workload) for workload in period.workloads]
        self._add_vcpus(period, line)
        if period.limits:
            line["limits"] = {name: limits_row(one, self._layout) for name, one in period.limits.items()}
        if period.unwatched:
            line["unwatched"] = True
        line["decision"] = decision_row(entry.decision, self._layout, self._state)
        self._state = entry.decision.state
        if entry.results:
            line["results"] = [result_row(result, self._layout) for result in entry.results]
        if entry.violations:
            line["violations"] = entry.violations
        line["stages_ns"] = entry.stages._asdict()
        line["cpu_ns"], line["rest"] = entry.outlay
        sealed, self._chain = seal(to_json(line), self._chain)
        return sealed

    def _add_vcpus(self, period: Period, line: PeriodLine) -> None:
        """Usage that is not idle; knobs and cores that differ from the line before."""
        order = self._layout.order
        usage = in_order(period.usage, order)
        line["usage"] = [
            (number, consumed_ns, ready_ns, dispatches, state._value_, conflicts, self._wakers(wakers), *more)
            for number, used in enumerate(usage)
            if used is not IDLE and used is not None
            for consumed_ns, ready_ns, dispatches, state, conflicts, wakers, *counted in (used,)
            for more in (counted if counted != UNCOUNTED else (),)
        ]
        if len(period.usage) != len(order):
            line["unjudged"] = [number for number, used in enumerate(usage) if used is None]
        knobs = in_order(period.knobs, order)
        if knobs != self._knobs:
            line["knobs"] = [
                (number, now and knobs_row(now))
                for number, (now, before) in enumerate(zip(knobs, self._knobs, strict=True))
                if now is not before and now != before
            ]
            self._knobs = knobs
        cores = in_order(period.core_of, order)
        if cores != self._cores:
            line["cores"] = [
                (number, now)
                for number, (now, before) in enumerate(zip(cores, self._cores, strict=True))
                if now != before
            ]
            self._cores = cores

    def _wakers(self, wakers: tuple[tuple[VcpuId, int], ...]) -> list[tuple[Ref, int]]:
        return [(self._layout.ref(waker), count) for waker, count in wakers]
