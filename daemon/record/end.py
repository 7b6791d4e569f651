"""Why each knob is as it is, from the end of a record: rows as JSON gives them, for who wants one workload.

What `grounds.py` remembers while a daemon runs is read here without the daemon's values: importing those
takes longer than reading the record, and `dasec explain` is to answer at once.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from .lines import MALFORMED, RecordLines, begins_anew, not_a_period

IN_FORCE = ("applied", "dry_run")
"""`grounds.IN_FORCE` as a line has it."""

Row = Sequence[Any]

Who = tuple[int, int, int]
"""Process, thread, start: a `VcpuId` as a line has it."""

USAGE, USAGE_END = b'"usage":[', b'],"'
"""Usage is most of a line and explains nothing. In it, a name of a state follows no bracket."""


class Write(NamedTuple):
    """One write of a knob, what became of it, what its rule saw, in which period, ending when."""

    prior: int | Sequence[int]
    new: int | Sequence[int]
    rule: str
    outcome: str
    detail: str
    inputs: Sequence[tuple[str, int]]
    period: int
    clock_ns: int


class End:
    """The last period of a record, and the last write of each knob."""

    def __init__(self) -> None:
        self.period = self.clock_ns = 0
        self.workloads: Mapping[str, Mapping[str, Any]] = {}
        self._order: list[Who] = []
        self._knobs: dict[Who, Row] = {}
        self._in_force: dict[tuple[Who, str], Write] = {}
        self._failed: dict[tuple[Who, str], Write] = {}

    def knobs(self, vcpu: Who) -> Row:
        """Weight, latency and CPUs in the last period, before that period's own writes; None: not ours."""
        return self._knobs.get(vcpu) or (None, None, None)

    def of(self, vcpu: Who, knob: str) -> tuple[Write | None, Write | None]:
        """The write in force, and the last that failed after it."""
        return self._in_force.get((vcpu, knob)), self._failed.get((vcpu, knob))

    def add(self, line: Mapping[str, Any]) -> None:
        """The next period's line."""
        self.period, self.clock_ns = line["period"], line["clock_ns"]
        if "workloads" in line:
            self.workloads = {workload["name"]: workload for workload in line["workloads"]}
            self._order = [who(row) for workload in line["workloads"] for row in workload["vcpus"]]
            self._knobs = {}
        for number, row in line.get("knobs", ()):
            self._knobs[self._order[number]] = row
        if "held" in line:
            self._in_force, self._failed = {}, {}
            for vcpu, knob, prior, new, rule, outcome, detail, inputs, period, clock_ns in line["held"]:
                write = Write(prior, new, rule, outcome, detail, inputs, period, clock_ns)
                self._note(who(vcpu), knob, write)
        if line.get("results"):
            self._add_results(line)

    def _add_results(self, line: Mapping[str, Any]) -> None:
        seen = {(self._who(ref), knob): inputs for ref, knob, _, inputs in line["decision"]["reasons"]}
        for ref, knob, prior, new, rule, outcome, *detail in line["results"]:
            vcpu = self._who(ref)
            said = detail[0] if detail else ""
            inputs = seen.get((vcpu, knob), ())
            write = Write(prior, new, rule, outcome, said, inputs, self.period, self.clock_ns)
            self._note(vcpu, knob, write)

    def _note(self, vcpu: Who, knob: str, write: Write) -> None:
        if write.outcome in IN_FORCE:
            self._in_force[vcpu, knob] = write
            self._failed.pop((vcpu, knob), None)
        else:
            self._failed[vcpu, knob] = write

    def _who(self, ref: int | Row) -> Who:
        return self._order[ref] if isinstance(ref, int) else who(ref)


def who(row: Row) -> Who:
    """Whom the first three columns of a row mean."""
    pid, tid, start_ticks, *_ = row
    return pid, tid, start_ticks


def end_of(path: str) -> End | None:
    """The end of a record; None if it holds no period yet. Raises Unreadable."""
    end, anew = None, True
    for line in RecordLines(path).read():
        if begins_anew(line):
            anew = True
            continue
        if end is None or anew:
            end, anew = End(), False
        try:
            end.add(json.loads(_without_usage(line)))
        except MALFORMED as error:
            raise not_a_period(path, error) from error
    return end


def _without_usage(line: bytes) -> bytes:
    start = line.find(USAGE)
    end = line.find(USAGE_END, start)
    return line[: start + len(USAGE)] + line[end:] if 0 <= start < end else line
