"""`dasec explain WORKLOAD`: why each of its knobs is what it is, from the end of the record."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, TypedDict

from ..errors import ExitStatus, Refusal
from ..linux import cpulist
from ..linux.printable import printable
from ..record.end import IN_FORCE, End, Row, Write, end_of, who
from ..record.lines import Unreadable
from .rule_text import meaning, milliseconds, numbers

if TYPE_CHECKING:
    from ..service.status import Status

KNOBS = ("weight", "rescheduling_latency", "affinity")
"""`model.Knob`, in the order of a line's columns."""

APPLIED = "applied"
DONE = {APPLIED: "written", "dry_run": "dry run, would be written"}
"""Outcomes in words; of the others, the name says it."""

NOT_OURS = "not ours: this host has no such knob for it, it was left to somebody else, or it is not wanted"
AS_FOUND = "as found: nothing was written"


class Written(TypedDict):
    """One write of a knob. `inputs` are what its rule saw; `seconds_ago` is before the record's end."""

    rule: str
    inputs: list[tuple[str, int]]
    prior: int | str
    new: int | str
    outcome: str
    detail: str
    period: int
    seconds_ago: float


class KnobStory(TypedDict):
    """One knob: its present value (null: not ours), who wrote it, and what failed since."""

    knob: str
    value: int | str | None
    written: Written | None
    failed: Written | None


class VcpuStory(TypedDict):
    """One vCPU and its knobs."""

    vcpu: str
    tid: int
    knobs: list[KnobStory]


class Story(TypedDict):
    """What `dasec explain --json` prints. A weight is a number, a latency ns, an affinity a list of CPUs."""

    workload: str
    share: int
    record: str
    period: int
    guard: str
    vcpus: list[VcpuStory]


def record_of(directory: str | os.PathLike[str], now_ns: int) -> tuple[str, Status]:
    """The running daemon's record, and what it says of itself. Raises Refusal."""
    from ..service.status import Absent, read

    status = read(directory, now_ns)
    if isinstance(status, Absent):
        raise Refusal(ExitStatus.FAILED, f"{status.why}, or name a record with --record FILE")
    if status["record"] is None:
        raise Refusal(
            ExitStatus.FAILED, "the daemon keeps no record: start it with `dasec run --record FILE`"
        )
    return status["record"], status


def answer(
    workload: str, record: str | None, directory: str | os.PathLike[str], now_ns: int, *, as_json: bool
) -> str:
    """What `dasec explain` prints. Raises Refusal."""
    kept, said = (record, None) if record else record_of(directory, now_ns)
    story = explain(kept, workload, said)
    if not as_json:
        return render(story)
    import json

    return json.dumps(story, indent=2)


def explain(path: str | os.PathLike[str], name: str, status: Status | None) -> Story:
    """Why the knobs of a workload are what they are. Raises Refusal."""
    path = os.fspath(path)
    try:
        end = end_of(path)
    except Unreadable as error:
        raise Refusal(ExitStatus.USAGE, str(error)) from error
    if end is None:
        raise Refusal(ExitStatus.FAILED, f"{path}: holds no period yet: try again in a second")
    if name not in end.workloads:
        from ..config.complaints import nearest

        known = nearest(name, end.workloads) if end.workloads else "there is none at present"
        raise Refusal(
            ExitStatus.FAILED, f"no workload {name!r} in the last period of the record {path}: {known}"
        )
    workload = end.workloads[name]
    said = {one["name"]: one["guard"] for one in status["workloads"]} if status else {}
    return Story(
        workload=name,
        share=workload["share"],
        record=path,
        period=end.period,
        guard=said.get(name, ""),
        vcpus=[_vcpu(row, end) for row in workload["vcpus"]],
    )


def _vcpu(row: Row, end: End) -> VcpuStory:
    vcpu, name = who(row), row[3]
    values = zip(KNOBS, end.knobs(vcpu), strict=True)
    return VcpuStory(
        vcpu=name, tid=vcpu[1], knobs=[_knob(knob, value, end, *end.of(vcpu, knob)) for knob, value in values]
    )


def _knob(
    knob: str, value: int | Sequence[int] | None, end: End, in_force: Write | None, failed: Write | None
) -> KnobStory:
    if in_force and in_force.period == end.period and in_force.outcome == APPLIED:
        value = in_force.new  # the line's knobs are those before its own writes
    return KnobStory(
        knob=knob,
        value=None if value is None else plain(value),
        written=_written(in_force, end),
        failed=_written(failed, end),
    )


def _written(write: Write | None, end: End) -> Written | None:
    if write is None:
        return None
    return Written(
        rule=write.rule,
        inputs=[(name, value) for name, value in write.inputs],
        prior=plain(write.prior),
        new=plain(write.new),
        outcome=write.outcome,
        detail=write.detail,
        period=write.period,
        seconds_ago=round((end.clock_ns - write.clock_ns) / 1e9, 3),
    )


def plain(value: int | Sequence[int]) -> int | str:
    """A knob's value without sequences: CPUs as the kernel's list."""
    return value if isinstance(value, int) else cpulist.render(value)


def render(story: Story) -> str:
    """The story for a person."""
    return "\n".join(map(printable, _lines(story)))


def _lines(story: Story) -> Iterator[str]:
    yield (
        f"{story['workload']}: {len(story['vcpus'])} vCPUs, share {story['share']};"
        f" period {story['period']} of {story['record']}"
    )
    if story["guard"]:
        yield f"guard: {story['guard']}"
    if not any(knob["written"] or knob["failed"] for vcpu in story["vcpus"] for knob in vcpu["knobs"]):
        yield "nothing was written for it so far"
    for vcpu in story["vcpus"]:
        yield f"{vcpu['vcpu']} (thread {vcpu['tid']})"
        for knob in vcpu["knobs"]:
            first, *more = _knob_lines(knob)
            yield f"  {knob['knob'].replace('_', ' '):<21}{first}"
            yield from (f"{'':<23}{line}" for line in more)


def _knob_lines(knob: KnobStory) -> Sequence[str]:
    value, written, failed = knob["value"], knob["written"], knob["failed"]
    lines = []
    if value is None:
        lines.append(NOT_OURS)
    else:
        lines.append(f"{shown(knob['knob'], value)}{'' if written else ', ' + AS_FOUND}")
    if written:
        lines += _why(knob["knob"], written)
        if value is not None and written["outcome"] == APPLIED and value != written["new"]:
            lines.append(
                f"we wrote {shown(knob['knob'], written['new'])}: somebody else has changed it since"
            )
    if failed:
        lines += _why(knob["knob"], failed)
    return lines


def _why(knob: str, written: Written) -> Iterator[str]:
    done = DONE.get(written["outcome"], written["outcome"])
    detail = f" ({written['detail']})" if written["detail"] and written["outcome"] not in IN_FORCE else ""
    change = f"{shown(knob, written['prior'])} -> {shown(knob, written['new'])}"
    yield f"{done} {written['seconds_ago']:.1f} s ago{detail}: {change}: {meaning(written['rule'])}"
    if written["inputs"]:
        yield f"it saw {numbers(written['inputs'])}"


def shown(knob: str, value: int | str) -> str:
    """A knob's value with its unit."""
    if knob == "rescheduling_latency" and isinstance(value, int):
        return milliseconds(value)
    return f"CPUs {value}" if knob == "affinity" else str(value)
