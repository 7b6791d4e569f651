"""Why each knob has its value: the last write of each, and what its rule saw.

A line of the record tells the writes of its own period only, and a knob may keep its value for a day.
So every now and then a line repeats the last write of each knob (`held`), and whoever wants to know why
reads from the last such line on, not from the beginning (docs/decisions/0027-operators.md).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, cast

from ..model import Change, Core, Knob, KnobValue, Outcome, Period, Result, VcpuId
from .entries import EMPTY_LAYOUT, Entry, PeriodLine, VcpuOrder, result_row

Inputs = Sequence[tuple[str, int]]

IN_FORCE = (Outcome.APPLIED, Outcome.DRY_RUN)
"""Outcomes after which the knob has the new value, or would have it."""


class Ground(NamedTuple):
    """One write: what became of it, what its rule saw, and in which period, ending when."""

    result: Result
    inputs: Inputs
    period: int
    clock_ns: int


class Grounds:
    """The last write of each knob, and the last one that failed if that was later."""

    def __init__(self) -> None:
        self._in_force: dict[tuple[VcpuId, Knob], Ground] = {}
        self._failed: dict[tuple[VcpuId, Knob], Ground] = {}

    def note(self, entry: Entry) -> None:
        """Remember the writes of one period."""
        if not entry.results:
            return
        seen = {(reason.vcpu, reason.knob): reason.inputs for reason in entry.decision.reasons}
        for result in entry.results:
            inputs = seen.get((result.change.vcpu, result.change.knob), ())
            self._add(Ground(result, inputs, entry.period.index, entry.clock_ns))

    def read(self, line: PeriodLine, layout: VcpuOrder) -> None:
        """Remember what a line of the record tells: all that holds, if it says so, and its own writes."""
        if "held" in line:
            self._in_force.clear()
            self._failed.clear()
        for row in line.get("held", ()):
            *written, inputs, period, clock_ns = row
            ground = Ground(
                read_result(written, EMPTY_LAYOUT),
                cast(Inputs, inputs),
                cast(int, period),
                cast(int, clock_ns),
            )
            self._add(ground)
        results = line.get("results", ())
        if not results:
            return
        reasons = cast(Sequence[Sequence[object]], line["decision"].get("reasons", ()))
        seen = {(layout.vcpu(cast(int, ref)), knob): inputs for ref, knob, _, inputs in reasons}
        for row in results:
            result = read_result(row, layout)
            inputs = seen.get((result.change.vcpu, result.change.knob.value), ())
            self._add(Ground(result, cast(Inputs, inputs), line["period"], line["clock_ns"]))

    def of(self, vcpu: VcpuId, knob: Knob) -> tuple[Ground | None, Ground | None]:
        """The write in force, and the last that failed after it."""
        return self._in_force.get((vcpu, knob)), self._failed.get((vcpu, knob))

    def rows(self, period: Period) -> Sequence[Sequence[object]]:
        """All of it as a line holds it; who is gone is forgotten."""
        there = {vcpu.id for workload in period.workloads for vcpu in workload.vcpus}
        self._in_force = _of(there, self._in_force)
        self._failed = _of(there, self._failed)
        return [_row(ground) for ground in self._all()]

    def _all(self) -> Iterator[Ground]:
        yield from self._in_force.values()
        yield from self._failed.values()

    def _add(self, ground: Ground) -> None:
        key = ground.result.change.vcpu, ground.result.change.knob
        if ground.result.outcome in IN_FORCE:
            self._in_force[key] = ground
            self._failed.pop(key, None)
        else:
            self._failed[key] = ground


def _of(
    there: set[VcpuId], grounds: Mapping[tuple[VcpuId, Knob], Ground]
) -> dict[tuple[VcpuId, Knob], Ground]:
    return {key: ground for key, ground in grounds.items() if key[0] in there}


def _row(ground: Ground) -> Sequence[object]:
    result, inputs, period, clock_ns = ground
    return [*result_row(result._replace(detail=""), EMPTY_LAYOUT), result.detail, inputs, period, clock_ns]


def read_result(row: Sequence[object], layout: VcpuOrder) -> Result:
    """The inverse of `result_row`."""
    ref, knob, prior, new, rule, outcome, *detail = row
    change = Change(
        layout.vcpu(cast(int, ref)),
        Knob(cast(str, knob)),
        read_value(prior),
        read_value(new),
        cast(str, rule),
    )
    return Result(change, Outcome(cast(str, outcome)), cast(str, detail[0]) if detail else "")


def read_value(value: object) -> KnobValue:
    """A knob's value as a line holds it."""
    return value if isinstance(value, int) else frozenset(cast(list[Core], value))
