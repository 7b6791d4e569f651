"""What the running daemon is doing, in a file that it replaces once a second (status.py reads it)."""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path

from ..bandwidth.costs import Costs
from ..config.subject import Subject
from ..guard.state import standings_in
from ..linux import cpulist, procfs, whole_file
from ..log import Announcer
from ..model import (
    NO_KNOBS,
    NO_LIMITS,
    Capabilities,
    Knob,
    Outcome,
    Period,
    PolicyState,
    Shortfall,
    VcpuId,
)
from ..record.entries import Entry
from ..reservations.core_map import core_map
from ..reservations.grants import Reservations
from ..reservations.keep import held_in
from .policy_alerts import verdict_of
from .status import FILE_NAME, INTERVAL_NS, Status, WorkloadStatus


class StatusFile:
    """Counts what happens; once a second writes it down, whole or not at all."""

    def __init__(
        self,
        directory: Path,
        subject: Subject,
        announcer: Announcer,
        clock: Callable[[], int] = time.monotonic_ns,
        shortfall: Callable[[], Shortfall] = Shortfall,
        capabilities: Callable[[], Capabilities] | None = None,
    ) -> None:
        self._path = directory / FILE_NAME
        self._capabilities = capabilities or (lambda: subject.capabilities)
        self._subject, self._announcer, self._clock = subject, announcer, clock
        self._shortfall = shortfall
        self._record = None if subject.record is None else str(subject.record.absolute())
        self._pid = os.getpid()
        self._start_ticks = procfs.read_stat(self._pid, self._pid).start_ticks
        self._started_ns = self._written_ns = clock()
        self._cpu_ns = time.process_time_ns()
        self._periods = self._violations = self._work_ns = self._longest_ns = self._told = 0
        self._rules: Counter[str] = Counter()
        self._outcomes: Counter[str] = Counter()
        self._held: set[tuple[VcpuId, Knob]] = set()
        self._costs = Costs()
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
        self._costs.add(entry.period)
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
        with contextlib.suppress(OSError):
            whole_file.remove(self._path)

    def _workloads(self, entry: Entry, short: Shortfall) -> list[WorkloadStatus]:
        verdicts = {
            each.workload: verdict_of(each, self._subject.policy, self._subject.period_ms)
            for each in standings_in(entry.decision.state)
        }
        held = held_in(entry.decision.state, entry.period.topology)
        self._costs.keep({vcpu.id for each in entry.period.workloads for vcpu in each.vcpus})
        return [
            WorkloadStatus(
                name=each.name,
                vcpus=len(each.guests_own),
                share=each.share,
                guard=verdicts.get(each.name, ""),
                left_out=short.left_out.get(each.name, 0),
                unheard=short.unheard.get(each.name, 0),
                limit_ppm=limits.tightest_ppm,
                throttled_ms=self._costs.stopped_ns(each.name) // 1_000_000,
                used_up_by=list(self._costs.parts(each)),
                stopped_ms=list(self._costs.own_ms(each)),
                spared_ms=self._costs.spared_ns(each.name) // 1_000_000,
                capped=sum(1 for own in limits.own.values() if own.present_ppm),
                reserved=_reserved(held, each.name),
            )
            for each in entry.period.workloads
            for limits in (entry.period.limits.get(each.name, NO_LIMITS),)
        ]

    def _replace_file(self, entry: Entry, now_ns: int) -> None:
        status = json.dumps(self._status(entry, now_ns)).encode()  # a path in it may be no UTF-8
        self._written_ns = now_ns
        try:
            whole_file.replace(self._path, status)
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
        short = self._shortfall()
        return Status(
            pid=self._pid,
            start_ticks=self._start_ticks,
            started_ns=self._started_ns,
            written_ns=now_ns,
            policy=self._subject.policy,
            period_ms=self._subject.period_ms,
            dry_run=self._subject.dry_run,
            record=self._record,
            capabilities=asdict(self._capabilities()),
            workloads=self._workloads(entry, short),
            cores=list(_cores(entry)),
            wakeups_lost=short.lost,
            wakeups_missed=short.missed,
            knobs_held={knob.value: held[knob.value] for knob in Knob},
            changes_by_rule=dict(self._rules),
            outcomes=dict(self._outcomes),
            periods=self._periods,
            late_periods=entry.late_periods,
            violations=self._violations,
            mean_period_us=self._work_ns // self._periods // 1000,
            longest_period_us=self._longest_ns // 1000,
            own_cpu_percent=round(100 * share, 3),
            budget_percent=self._subject.budget_percent,
            waits_for_budget=entry.decision.can_wait,
            look_ms=(now_ns - self._written_ns) // looks // 1_000_000,
            troubles=list(self._announcer.troubles),
            reloads=self._reloads,
            not_reloaded=self._not_reloaded,
        )


def _ours(period: Period, vcpu: VcpuId, knob: Knob) -> bool:
    """Is the vCPU still there, and this knob still ours to write?"""
    if knob is Knob.CAP:
        return any(vcpu in one.own and one.own[vcpu].present_ppm for one in period.limits.values())
    weight, latency_ns, affinity = period.knobs.get(vcpu, NO_KNOBS)
    ours = {Knob.WEIGHT: weight, Knob.RESCHEDULING_LATENCY: latency_ns, Knob.AFFINITY: affinity}
    return ours[knob] is not None


def _reserved(held: Reservations | None, workload: str) -> str:
    """What a workload has: "exclusive 3,14-15"."""
    if held is None or workload not in held.grants:
        return ""
    return f"{held.grants[workload].ask.cpu_class} {cpulist.render(held.cpus_of(workload))}"


def _cores(entry: Entry) -> Iterator[tuple[str, str]]:
    """The cores and who holds them, where anybody does."""
    topology = entry.period.topology
    held = held_in(entry.decision.state, topology)
    if held is not None and held.grants:
        yield from ((cpulist.render(run.cpus), run.holders) for run in core_map(held, topology.cores))
