"""`dasec top`: who waits, which knobs they have, and why they changed last; from the record, as it grows."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Literal, NamedTuple

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from ..bandwidth.costs import Costs, in_words
from ..errors import ExitStatus, Refusal
from ..linux import cpulist
from ..linux.printable import printable
from ..model import IDLE, NO_KNOBS, Knob, Knobs, Workload
from ..record.lines import Unreadable
from ..record.provenance import Ground
from ..record.tail import RecordTail, Seen
from ..service.status import POLICY_OFF, Status
from .explain import record_of
from .rule_text import milliseconds

RECENT_NS = 2_000_000_000
"""What percentages are of: long enough to be calm, short enough to see a change."""

WAITS_BAD_PERCENT, WAITS_PERCENT = 10.0, 5.0
"""CPU-Ready from which a vCPU is shown in red and in yellow: the bands that operators of hypervisors use."""

HEAD_LINES = 4
"""Two lines above the table, its own head, and one to spare for the cursor; a map of the cores is one
more."""


NARROWEST = 8
"""Characters of a name of a vCPU or a change, whatever the width of the terminal."""

SHOWN = 2
"""Of the vCPUs that used up a limit: the column is narrow."""


class Row(NamedTuple):
    """One vCPU of late. `wait_ms` is the mean wait for a core of its dispatches. `stop_percent`: for so long
    its own quota or cap stopped it."""

    name: str
    run_percent: float
    ready_percent: float
    wait_ms: float
    stop_percent: float
    knobs: Knobs
    last: str


class Recent:
    """What the record told of late."""

    def __init__(self, tail: RecordTail) -> None:
        self._tail = tail
        self._seen: deque[Seen] = deque()

    def look(self) -> Seen:
        """The last period. Raises Refusal if there is none, or the record cannot be read."""
        try:
            for seen in self._tail.read():
                self._seen.append(seen)
                self._forget()
        except Unreadable as error:
            raise Refusal(ExitStatus.USAGE, str(error)) from error
        if not self._seen:
            raise Refusal(ExitStatus.FAILED, f"{self._tail.path}: holds no period yet: try again in a second")
        return self._seen[-1]

    def rows(self, workload: Workload) -> list[Row]:
        """The vCPUs of a workload, those that waited longest first."""
        found = [self._row(workload, number) for number in range(len(workload.vcpus))]
        return sorted(found, key=lambda row: -row.ready_percent)

    def limit(self, workload: Workload) -> str:
        """What its CPU limit did, in words: for how long it stopped threads, over all CPUs (four at once are
        400 %), who used it up, and for how long caps kept it from stopping all."""
        costs = Costs()
        for seen in self._seen:
            costs.add(seen.period)
        length_ns = sum(seen.period.length_ns for seen in self._seen)
        stopped, spared = (
            100 * table(workload.name) / length_ns for table in (costs.stopped_ns, costs.spared_ns)
        )
        used_up = in_words(costs.parts(workload), "%", SHOWN)
        said = (
            f"throttled {stopped:.1f} %" + (f" (by {used_up})" if used_up else "") + ", " if stopped else ""
        )
        return said + (f"caps spare {spared:.1f} %, " if spared else "")

    def _forget(self) -> None:
        total_ns = sum(seen.period.length_ns for seen in self._seen)
        if total_ns - self._seen[0].period.length_ns >= RECENT_NS:
            self._seen.popleft()

    def _row(self, workload: Workload, number: int) -> Row:
        vcpu = workload.vcpus[number]
        last = self._seen[-1]
        used = [seen.period.usage.get(vcpu.id, IDLE) for seen in self._seen]
        length_ns = sum(seen.period.length_ns for seen in self._seen)
        stopped_ns = sum(
            limits.own[vcpu.id].throttled_ns
            for seen in self._seen
            if (limits := seen.period.limits.get(workload.name)) and vcpu.id in limits.own
        )
        ready_ns, dispatches = sum(each.ready_ns for each in used), sum(each.dispatches for each in used)
        return Row(
            f"{printable(vcpu.name)} {vcpu.id.tid}",
            100 * sum(each.consumed_ns for each in used) / length_ns,
            100 * ready_ns / length_ns,
            ready_ns / max(dispatches, 1) / 1e6,
            100 * stopped_ns / length_ns,
            last.period.knobs.get(vcpu.id, NO_KNOBS),
            _last(list(chain.from_iterable(self._tail.grounds.of(vcpu.id, knob) for knob in Knob)), last),
        )


def _last(grounds: Sequence[Ground | None], last: Seen) -> str:
    """The rule of the last write, and how long ago that was."""
    ground = max(filter(None, grounds), key=lambda each: each.clock_ns, default=None)
    if ground is None:
        return ""
    ago_s = (last.line["clock_ns"] - ground.clock_ns) / 1e9
    age = (
        f"{ago_s:.0f}s"
        if ago_s < 600
        else f"{ago_s / 60:.0f}min"
        if ago_s < 36_000
        else f"{ago_s / 3600:.0f}h"
    )
    return f"{ground.result.change.rule} {age}"


def picture(recent: Recent, status: Status | None, height: int) -> Group:
    """What is shown, in so many lines."""
    last = recent.look()
    cores = [_cut(_cores(status))] if status and status["cores"] else []
    room = max(1, height - HEAD_LINES - len(cores))
    lines = list(_lines(recent, last, status))
    table = Table(box=None, padding=(0, 1, 0, 0), expand=True, header_style="reverse")
    for title in _titles(last):
        left = title in ("vCPU", "last change")
        justify: Literal["left", "right"] = "left" if left else "right"
        table.add_column(
            title,
            justify=justify,
            no_wrap=True,
            overflow="ellipsis",
            min_width=max(NARROWEST * left, len(title)),
        )
    for line in lines if len(lines) <= room else lines[: room - 1]:
        table.add_row(*line)
    if len(lines) > room:
        table.add_row(f"… {len(lines) - room + 1} more")
    return Group(_first(last, status), _second(last, status), *cores, table)


def _cores(status: Status) -> str:
    """A map of the cores: who has them for itself, who in parts, what is in the pool."""
    return "cores: " + " | ".join(f"{cpus} {holders}" for cpus, holders in status["cores"])


def _first(last: Seen, status: Status | None) -> Text:
    work_ms = sum(last.line["stages_ns"].values()) / 1e6
    what = f"{status['policy']} on {status['capabilities']['backend']}" if status else "a record"
    own = f", own CPU {status['own_cpu_percent']:.1f} %" if status else ""
    late = last.line.get("late_periods", 0)
    return _cut(f"dasec: {what}, period {last.period.index} ({late} late), work {work_ms:.1f} ms{own}")


def _second(last: Seen, status: Status | None) -> Text:
    """The worst news, or the extent."""
    troubles = status["troubles"] if status else []
    if troubles:
        more = f" (and {len(troubles) - 1} more: dasec status)" if len(troubles) > 1 else ""
        return _cut(f"trouble: {troubles[0]}{more}", "bold red")
    vcpus = len(last.layout.order)
    cores = len(last.period.topology.cores)
    return _cut(f"{len(last.period.workloads)} workloads, {vcpus} vCPUs on {cores} cores; Ctrl-C ends")


def _cut(text: str, style: str = "") -> Text:
    return Text(printable(text), style=style, no_wrap=True, overflow="ellipsis")


def _lines(recent: Recent, last: Seen, status: Status | None) -> Iterator[tuple[Text | str, ...]]:
    """A line a workload and a line a vCPU."""
    empty = [""] * (len(_titles(last)) - 4)
    reserved = {one["name"]: one["reserved"] for one in status["workloads"]} if status else {}
    off = {one["name"] for one in status["workloads"] if POLICY_OFF in one["guard"]} if status else set()
    for workload in last.period.workloads:
        rows = recent.rows(workload)
        own = f"{reserved[workload.name]}, " if reserved.get(workload.name) else ""
        yield (
            Text(printable(workload.name), style="bold"),
            f"{sum(row.run_percent for row in rows):.1f}",
            f"{sum(row.ready_percent for row in rows):.1f}",
            *empty,
            own
            + recent.limit(workload)
            + (f"guard: {POLICY_OFF}" if workload.name in off else f"share {workload.share}"),
        )
        for row in rows:
            yield _line(row, is_limited=bool(last.period.limits))


def _titles(last: Seen) -> tuple[str, ...]:
    """Those of the columns; that of stops only where there are limits."""
    stops = ("stop %",) if last.period.limits else ()
    return ("vCPU", "run %", "ready %", "wait ms", *stops, "weight", "latency", "CPUs", "last change")


def _line(row: Row, *, is_limited: bool) -> tuple[Text | str, ...]:
    weight, latency_ns, affinity = row.knobs
    style = (
        "red"
        if row.ready_percent >= WAITS_BAD_PERCENT
        else "yellow"
        if row.ready_percent >= WAITS_PERCENT
        else ""
    )
    return (
        Text(f" {row.name}"),
        f"{row.run_percent:.1f}",
        Text(f"{row.ready_percent:.1f}", style=style),
        f"{row.wait_ms:.2f}",
        *((f"{row.stop_percent:.1f}",) if is_limited else ()),
        "-" if weight is None else str(weight),
        "-" if latency_ns is None else milliseconds(latency_ns),
        "-" if affinity is None else cpulist.render(affinity),
        Text(printable(row.last)),
    )


def show(record: Path | None, directory: Path, interval_s: float, times: int | None) -> None:
    """Until Ctrl-C, or so many times; once, as plain text, where no terminal is, or one that cannot move its
    cursor. Raises Refusal."""
    console = Console(highlight=False)
    kept, status = (record, None) if record else record_of(directory, time.monotonic_ns())

    def said() -> Status | None:
        return None if status is None else record_of(directory, time.monotonic_ns())[1]

    recent = Recent(RecordTail(kept))
    if not console.is_terminal or console.is_dumb_terminal:
        console.print(picture(recent, status, 10**6))
        return
    with Live(
        picture(recent, status, console.height), console=console, screen=True, auto_refresh=False
    ) as live:
        _follow(lambda: live.update(picture(recent, said(), console.height), refresh=True), interval_s, times)


def _follow(refresh: Callable[[], None], interval_s: float, times: int | None) -> None:
    left = -1 if times is None else times
    try:
        while left:
            refresh()
            left -= 1
            time.sleep(interval_s)
    except KeyboardInterrupt:
        return
