"""`dasec explain WORKLOAD`: why each of its knobs is what it is, from the end of the record."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TypedDict

from ..bandwidth.costs import Costs, in_words
from ..errors import ExitStatus, Refusal
from ..linux import cpulist
from ..linux.printable import printable
from ..model import NO_KNOBS, THREAD_KNOBS, Knob, KnobValue, Outcome, Vcpu, Workload
from ..record.lines import Unreadable
from ..record.provenance import IN_FORCE, Ground, Grounds
from ..record.tail import RecordTail, Seen
from ..service.status import Absent, Status, read
from .rule_text import meaning, milliseconds, numbers

DONE = {Outcome.APPLIED.value: "written", "dry_run": "dry run, would be written"}
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


class LimitStory(TypedDict):
    """What a workload's CPU limit did since the record begins: as `dasec status` says it of its time."""

    limit_ppm: int
    throttled_ms: int
    used_up_by: list[tuple[str, int]]
    stopped_ms: list[tuple[str, int]]
    spared_ms: int


class Story(TypedDict):
    """What `dasec explain --json` prints. A weight is a number, a latency ns, an affinity a list of CPUs.
    `limit`: null where there is none."""

    workload: str
    share: int
    record: str
    period: int
    guard: str
    limit: LimitStory | None
    vcpus: list[VcpuStory]


def record_of(directory: Path, now_ns: int) -> tuple[Path, Status]:
    """The running daemon's record, and what it says of itself. Raises Refusal."""
    status = read(directory, now_ns)
    if isinstance(status, Absent):
        raise Refusal(ExitStatus.FAILED, f"{status.why}, or name a record with --record FILE")
    if status["record"] is None:
        raise Refusal(
            ExitStatus.FAILED, "the daemon keeps no record: start it with `dasec run --record FILE`"
        )
    return Path(status["record"]), status


def answer(workload: str, record: Path | None, directory: Path, now_ns: int, *, as_json: bool) -> str:
    """What `dasec explain` prints. Raises Refusal."""
    kept, said = (record, None) if record else record_of(directory, now_ns)
    story = explain(kept, workload, said)
    return json.dumps(story, indent=2) if as_json else render(story)


def explain(path: Path, name: str, status: Status | None) -> Story:
    """Why the knobs of a workload are what they are. Raises Refusal."""
    last, grounds, costs = _end(path)
    workloads = {workload.name: workload for workload in last.period.workloads}
    if name not in workloads:
        from ..config.complaints import nearest  # it loads pydantic: half of what an answer takes

        known = nearest(name, workloads) if workloads else "there is none at present"
        raise Refusal(
            ExitStatus.FAILED, f"no workload {name!r} in the last period of the record {path}: {known}"
        )
    said = {one["name"]: one["guard"] for one in status["workloads"]} if status else {}
    return Story(
        workload=name,
        share=workloads[name].share,
        record=str(path),
        period=last.line["period"],
        guard=said.get(name, ""),
        limit=_limit(workloads[name], last, costs),
        vcpus=[_vcpu(vcpu, last, grounds) for vcpu in workloads[name].vcpus],
    )


def _end(path: Path) -> tuple[Seen, Grounds, Costs]:
    """The last period of a record, the last write of each knob, and what limits cost. Raises Refusal."""
    last, tail, costs = None, RecordTail(path), Costs()
    try:
        for last in tail.read():
            costs.add(last.period)
    except Unreadable as error:
        raise Refusal(ExitStatus.USAGE, str(error)) from error
    if last is None:
        raise Refusal(ExitStatus.FAILED, f"{path}: holds no period yet: try again in a second")
    return last, tail.grounds, costs


def _limit(workload: Workload, last: Seen, costs: Costs) -> LimitStory | None:
    limits = last.period.limits.get(workload.name)
    if limits is None:
        return None
    return LimitStory(
        limit_ppm=limits.tightest_ppm,
        throttled_ms=costs.stopped_ns(workload.name) // 1_000_000,
        used_up_by=list(costs.parts(workload)),
        stopped_ms=list(costs.own_ms(workload)),
        spared_ms=costs.spared_ns(workload.name) // 1_000_000,
    )


def _vcpu(vcpu: Vcpu, last: Seen, grounds: Grounds) -> VcpuStory:
    values = zip(THREAD_KNOBS, last.period.knobs.get(vcpu.id, NO_KNOBS), strict=True)
    return VcpuStory(
        vcpu=vcpu.name,
        tid=vcpu.id.tid,
        knobs=[
            *(_knob(knob, value, last, *grounds.of(vcpu.id, knob)) for knob, value in values),
            *(
                _knob(Knob.CAP, limits.own[vcpu.id].present_ppm, last, *grounds.of(vcpu.id, Knob.CAP))
                for limits in last.period.limits.values()
                if vcpu.id in limits.own
            ),
        ],
    )


def _knob(
    knob: Knob, value: KnobValue | None, last: Seen, in_force: Ground | None, failed: Ground | None
) -> KnobStory:
    if in_force and in_force.period == last.line["period"] and in_force.result.outcome is Outcome.APPLIED:
        value = in_force.result.change.new  # the line's knobs are those before its own writes
    return KnobStory(
        knob=knob.value,
        value=None if value is None else plain(value),
        written=_written(in_force, last),
        failed=_written(failed, last),
    )


def _written(ground: Ground | None, last: Seen) -> Written | None:
    if ground is None:
        return None
    change, outcome, detail = ground.result
    return Written(
        rule=change.rule,
        inputs=[(name, value) for name, value in ground.inputs],
        prior=plain(change.prior),
        new=plain(change.new),
        outcome=outcome.value,
        detail=detail,
        period=ground.period,
        seconds_ago=round((last.line["clock_ns"] - ground.clock_ns) / 1e9, 3),
    )


def plain(value: KnobValue) -> int | str:
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
    if story["limit"]:
        yield from _limit_lines(story["limit"])
    if not any(knob["written"] or knob["failed"] for vcpu in story["vcpus"] for knob in vcpu["knobs"]):
        yield "nothing was written for it so far"
    for vcpu in story["vcpus"]:
        yield f"{vcpu['vcpu']} (thread {vcpu['tid']})"
        for knob in vcpu["knobs"]:
            first, *more = _knob_lines(knob)
            yield f"  {knob['knob'].replace('_', ' '):<21}{first}"
            yield from (f"{'':<23}{line}" for line in more)


def _limit_lines(limit: LimitStory) -> Iterator[str]:
    yield (
        f"limit {limit['limit_ppm'] / 1e6:g} cores: stopped threads for {limit['throttled_ms'] / 1e3:.1f} s"
        " since the record begins"
    )
    if used_up := limit["used_up_by"]:
        yield f"{'':<2}used up by {in_words(used_up, '%', len(used_up))}"
    if stopped := limit["stopped_ms"]:
        yield f"{'':<2}own quotas and caps stopped {in_words(stopped, 'ms', len(stopped))}"
    if limit["spared_ms"]:
        yield f"{'':<2}without caps and loans it would have stopped all for {limit['spared_ms'] / 1e3:.1f} s"


def _knob_lines(knob: KnobStory) -> Sequence[str]:
    value, written, failed = knob["value"], knob["written"], knob["failed"]
    lines = []
    if value is None:
        lines.append(NOT_OURS)
    else:
        lines.append(f"{shown(knob['knob'], value)}{'' if written else ', ' + AS_FOUND}")
    if written:
        lines += _why(knob["knob"], written)
        if value is not None and written["outcome"] == Outcome.APPLIED.value and value != written["new"]:
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
    if knob == "cap" and isinstance(value, int):
        return f"{value / 10_000:.1f} % of a core" if value else "none"
    return f"CPUs {value}" if knob == "affinity" else str(value)
