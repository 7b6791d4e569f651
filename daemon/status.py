"""What the running daemon is doing, in a file that it replaces once a second, and its reader."""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TypedDict, cast

from pydantic_core import to_json

from . import budget, wholefile
from .hosts.host import Capabilities
from .linux import procfs
from .linux.errors import ThreadGone
from .log import Announcer
from .model import NO_KNOBS, Knob, Outcome, Period, PolicyState, VcpuId
from .record import Entry
from .remarks import standings_in, verdict_of

FILE_NAME = "status.json"
INTERVAL_NS = 1_000_000_000

STALE_NS = 5_000_000_000
"""A daemon that has not reported for five intervals hangs, or its directory is full."""


class WorkloadStatus(TypedDict):
    """One workload as `dasec status` shows it."""

    name: str
    vcpus: int
    share: int
    guard: str


class Status(TypedDict):
    """What `dasec status --json` prints. Times are of CLOCK_MONOTONIC."""

    pid: int
    start_ticks: int
    started_ns: int
    written_ns: int
    policy: str
    period_ms: int
    dry_run: bool
    record: str | None
    capabilities: Mapping[str, object]
    workloads: list[WorkloadStatus]
    knobs_held: Mapping[str, int]
    changes_by_rule: Mapping[str, int]
    outcomes: Mapping[str, int]
    periods: int
    late_periods: int
    violations: int
    mean_period_us: int
    longest_period_us: int
    own_cpu_percent: float
    budget_percent: float | None
    look_ms: int
    troubles: list[str]
    reloads: int
    not_reloaded: list[str]


@dataclass(frozen=True, slots=True)
class Subject:
    """What the daemon was told; of it only the policy changes while it runs."""

    policy: str
    period_ms: int
    dry_run: bool
    capabilities: Capabilities
    budget_percent: float = budget.PERCENT
    record: Path | None = None


class StatusFile:
    """Counts what happens; once a second writes it down, whole or not at all."""

    def __init__(
        self,
        directory: Path,
        subject: Subject,
        announcer: Announcer,
        clock: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self._path = directory / FILE_NAME
        self._capabilities = asdict(subject.capabilities)
        self._subject, self._announcer, self._clock = subject, announcer, clock
        self._record = None if subject.record is None else str(subject.record.absolute())
        self._pid = os.getpid()
        self._start_ticks = procfs.read_stat(self._pid, self._pid).start_ticks
        self._started_ns = self._written_ns = clock()
        self._cpu_ns = time.process_time_ns()
        self._periods = self._violations = self._work_ns = self._longest_ns = self._told = 0
        self._rules: Counter[str] = Counter()
        self._outcomes: Counter[str] = Counter()
        self._held: set[tuple[VcpuId, Knob]] = set()
        self._reloads = 0
        self._not_reloaded: list[str] = []
        self._somebody_waits = False

    def write(self, entry: Entry, before: PolicyState) -> None:  # noqa: ARG002  # the interface of witnesses
        """Count one period, and write the file if a second is over."""
        work_ns = sum(entry.stages)
        self._periods += 1
        self._work_ns += work_ns
        self._longest_ns = max(self._longest_ns, work_ns)
        self._violations += len(entry.violations)
        for change, outcome, _ in entry.results:
            self._outcomes[outcome] += 1
            if outcome is Outcome.APPLIED:
                self._rules[change.rule] += 1
                self._held.add((change.vcpu, change.knob))
            elif outcome in (Outcome.VANISHED, Outcome.YIELDED):
                self._held.discard((change.vcpu, change.knob))
        now_ns = self._clock()
        if now_ns - self._written_ns >= INTERVAL_NS or self._somebody_waits:
            self._somebody_waits = False
            self._replace_file(entry, now_ns)

    def turn(self, policy: str, parameters: object) -> None:  # noqa: ARG002  # the interface of who turns
        """Another policy decides from the next period on, with every knob as before the first."""
        self._subject = replace(self._subject, policy=policy)
        self._held.clear()

    def reloading(self) -> None:
        """Nothing to say before the answer."""

    def answer(self, refused: Sequence[str]) -> None:
        """The configuration was read again; whoever asked waits for the file."""
        self._reloads += 1
        self._not_reloaded = list(refused)
        self._somebody_waits = True

    def remove(self) -> None:
        """The daemon ends: leave no file that says otherwise."""
        for path in (self._path, wholefile.fresh(self._path)):
            with contextlib.suppress(OSError):
                path.unlink(missing_ok=True)

    def _workloads(self, entry: Entry) -> list[WorkloadStatus]:
        verdicts = {
            each.workload: verdict_of(each, self._subject.policy, self._subject.period_ms)
            for each in standings_in(entry.decision.state)
        }
        return [
            WorkloadStatus(
                name=each.name,
                vcpus=len(each.vcpus),
                share=each.share,
                guard=verdicts.get(each.name, ""),
            )
            for each in entry.period.workloads
        ]

    def _replace_file(self, entry: Entry, now_ns: int) -> None:
        status = to_json(self._status(entry, now_ns))
        self._written_ns = now_ns
        try:
            wholefile.replace(self._path, status)
        except OSError as error:
            self._announcer.state("status", f"status {self._path}: {error.strerror}: `dasec status` is blind")
        else:
            self._announcer.state("status", None, f"status {self._path}: written again")

    def _status(self, entry: Entry, now_ns: int) -> Status:
        cpu_ns = time.process_time_ns()
        share = (cpu_ns - self._cpu_ns) / (now_ns - self._written_ns)
        self._cpu_ns = cpu_ns
        looks, self._told = self._periods - self._told, self._periods
        self._held = {held for held in self._held if _ours(entry.period, *held)}
        held = Counter(knob.value for _, knob in self._held)
        return Status(
            pid=self._pid,
            start_ticks=self._start_ticks,
            started_ns=self._started_ns,
            written_ns=now_ns,
            policy=self._subject.policy,
            period_ms=self._subject.period_ms,
            dry_run=self._subject.dry_run,
            record=self._record,
            capabilities=self._capabilities,
            workloads=self._workloads(entry),
            knobs_held={knob.value: held[knob.value] for knob in Knob},
            changes_by_rule=dict(self._rules),
            outcomes=dict(self._outcomes),
            periods=self._periods,
            late_periods=entry.late_periods,
            violations=self._violations,
            mean_period_us=self._work_ns // self._periods // 1000,
            longest_period_us=self._longest_ns // 1000,
            own_cpu_percent=round(100 * share, 3),
            budget_percent=self._subject.budget_percent if entry.decision.can_wait else None,
            look_ms=(now_ns - self._written_ns) // looks // 1_000_000,
            troubles=list(self._announcer.troubles),
            reloads=self._reloads,
            not_reloaded=self._not_reloaded,
        )


def _ours(period: Period, vcpu: VcpuId, knob: Knob) -> bool:
    """Is the vCPU still there, and this knob still ours to write?"""
    weight, latency_ns, affinity = period.knobs.get(vcpu, NO_KNOBS)
    ours = {Knob.WEIGHT: weight, Knob.RESCHEDULING_LATENCY: latency_ns, Knob.AFFINITY: affinity}
    return ours[knob] is not None


@dataclass(frozen=True, slots=True)
class Absent:
    """No running daemon, and why we think so."""

    why: str


def read(directory: Path, now_ns: int) -> Status | Absent:
    """What the daemon of `directory` last said of itself."""
    path = directory / FILE_NAME
    try:
        status = cast(Status, json.loads(path.read_bytes()))
        pid = int(status["pid"])
        alive = procfs.read_stat(pid, pid).start_ticks == status["start_ticks"]
    except FileNotFoundError:
        return Absent(f"no daemon runs: {path} does not exist: start one with `dasec run --config FILE`")
    except (ValueError, KeyError, TypeError):
        return Absent(f"{path}: is not a status file: remove it, or give the daemon's own directory")
    except OSError as error:
        return Absent(f"{path}: {error.strerror}: run as the daemon's user")
    except ThreadGone:
        alive = False
    if not alive:
        return Absent(f"no daemon runs: process {status['pid']} is gone: `dasec restore` puts its knobs back")
    age_ns = now_ns - status["written_ns"]
    if age_ns > STALE_NS:
        return Absent(f"the daemon (process {status['pid']}) has said nothing for {age_ns // 10**9} s")
    return status


def render(status: Status) -> str:
    """The status for a person."""
    capabilities = status["capabilities"]
    lines = [
        f"policy {status['policy']}{' (dry run)' if status['dry_run'] else ''} on {capabilities['backend']},"
        f" process {status['pid']}, every {status['period_ms']} ms",
        f"periods {status['periods']} ({status['late_periods']} late),"
        f" work {status['mean_period_us']} us on average, {status['longest_period_us']} us at most,"
        f" own CPU {status['own_cpu_percent']} % of a core,"
        f" a look every {status['look_ms']} ms ({_bound(status['budget_percent'])})",
        *(
            f"workload {w['name']}: {w['vcpus']} vCPUs, share {w['share']}"
            + (f", guard: {w['guard']}" if w["guard"] else "")
            for w in status["workloads"]
        ),
        "knobs held: " + _counts(status["knobs_held"]),
        "changes by rule: " + _counts(status["changes_by_rule"]),
        "outcomes: " + _counts(status["outcomes"]),
        *(f"{knob.value.replace('_', ' ')}: {capabilities[f'{knob.value}_note']}" for knob in Knob),
        f"wake edges: {capabilities['wake_edges_note']}",
        *(f"trouble: {trouble}" for trouble in status["troubles"]),
        *(f"not reloaded: {line}" for line in status["not_reloaded"]),
    ]
    return "\n".join(lines)


def _bound(budget_percent: float | None) -> str:
    """What the daemon may take, in words."""
    if budget_percent is None:
        return "without a budget: this policy must look every period"
    return f"budget {budget_percent:g} % of a core"


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counts.items()) or "none"
