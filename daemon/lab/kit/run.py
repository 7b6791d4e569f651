"""One run: an arm in a repetition, measured from outside, the same way for every arm and every application.

The arm `none` is the plain host: the same workloads, groups and arrivals, and no daemon. Every
other arm has the real daemon running beside the workloads.
"""

from __future__ import annotations

import contextlib
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from ...errors import Refusal
from ..load_tool import latencies
from .arms import (
    RIVAL,
    RIVALS,
    SCX,
    has_daemon,
    rival_of,
    told_under,
)
from .bench import Bench, record_name, run_name
from .controller import Controller, Managed, Report, Reserved, configuration, running, scheduled
from .counters import CoresUsed, CpuUse, Mark, cores_between
from .driver import RunningWork, WorkDone
from .errors import StartMissed, failure
from .home import TenantHome
from .layout import vm_level
from .process import one_look, sleep_until
from .results import RunResult, TenantResult
from .rival import rival
from .tree import CLIENT, DAEMON

BEGINS_S = (0.1, 0.3, 1.0, 3.0)
"""So long before it the load is told when it begins; longer where that was too late. Arrivals stay."""

START_OPTION = "--start-at-ns"
"""What the load tool complains of then."""

SETTLE_S = 0.3
"""From the beginning of the load to the next look at its threads: some applications start theirs then."""

EARLY_S = 0.03
"""Counters are read so long before the loads end by themselves: an ended thread has none."""


@dataclass(frozen=True, slots=True)
class _Attempt:
    """One that is being made."""

    bench: Bench
    arm: str
    repetition: int
    scratch: Path
    folder: Path
    """Of the applications' files."""
    homes: tuple[TenantHome, ...]
    works: list[RunningWork] = field(default_factory=list)

    def ensure_alive(self) -> None:
        for one in self.works:
            one.ensure_alive()

    def settle(self) -> None:
        with one_look():
            for home, one in zip(self.homes, self.works, strict=True):
                home.settle(one.pids())


def measure_one(bench: Bench, arm: str, repetition: int, tick: Callable[[], None]) -> RunResult:
    """One run; on a machine that is too slow or too busy to begin in time, with more time."""
    for begin_s in BEGINS_S:
        with contextlib.suppress(StartMissed):
            return _try(bench, arm, repetition, begin_s, tick)
    raise failure(f"load tool: not told within {BEGINS_S[-1]:g} s when to begin: is the machine overloaded?")


def _try(bench: Bench, arm: str, repetition: int, begin_s: float, tick: Callable[[], None]) -> RunResult:
    scratch = bench.directory / run_name(arm, repetition)
    folder = bench.kept / scratch.name if bench.kept else scratch
    shutil.rmtree(folder, ignore_errors=True)
    for each in {scratch, folder}:
        each.mkdir(parents=True)
    works: list[RunningWork] = []
    try:
        with bench.homes(bench.plan, bench.tree, arm) as homes:
            run = _Attempt(bench, arm, repetition, scratch, folder, homes, works)
            return _measure(run, begin_s, tick)
    except Refusal as refusal:
        if START_OPTION in str(refusal):
            raise StartMissed from refusal
        raise
    finally:
        bench.tree.sweep()
        for one in works:
            one.stop()
        shutil.rmtree(scratch, ignore_errors=True)


def _measure(run: _Attempt, begin_s: float, tick: Callable[[], None]) -> RunResult:
    """Everything comes up, then the daemon; warm-up, the measured part, late answers."""
    timing, first_ns = run.bench.plan.timing, time.monotonic_ns()
    _start(run)

    def look_after() -> None:
        tick()
        run.ensure_alive()
        if controller:
            controller.ensure_alive()

    with _controlled(run) as controller:
        lead_ns = first_ns + int(timing.lead_s * 1e9)
        start_ns = max(lead_ns, time.monotonic_ns() + int(begin_s * 1e9))
        sleep_until(start_ns - int(begin_s * 1e9), look_after)
        for one in run.works:
            one.begin(start_ns)
        begin_ns = start_ns + int(timing.warmup_s * 1e9)
        end_ns = begin_ns + int(timing.seconds * 1e9)
        sleep_until(min(begin_ns, start_ns + int(SETTLE_S * 1e9)), look_after)
        run.settle()
        sleep_until(begin_ns, look_after)
        run.settle()
        if run.bench.blame:
            run.bench.blame.follow(run.homes)
        begin = _mark(run)
        sleep_until(end_ns - int(EARLY_S * 1e9), look_after)
        end = _mark(run)
        if run.bench.at_end:
            run.bench.at_end(run.folder, run.homes)
        report = controller.report() if controller else Report()
        done = [one.finish() for one in run.works]
    return _result(run, begin, end, done, report)


def _start(run: _Attempt) -> None:
    """All workloads at once; then each is waited for, and its threads go where they belong."""
    plan = run.bench.plan
    for index, home in enumerate(run.homes):
        seed = run.bench.seed(plan, run.repetition, index)
        order = home.tenant.order(seed, plan.timing, run.folder, run.bench.calibration)
        run.works.append(home.tenant.driver.start(order, run.bench.place(home, run.scratch, run.folder)))
    for home, one in zip(run.homes, run.works, strict=True):
        one.await_up()
        home.settle(one.pids())
        home.ensure_complete()


@contextlib.contextmanager
def _controlled(run: _Attempt) -> Iterator[Controller | None]:
    """What the arm has beside the workloads, at work."""
    bench, arm = run.bench, run.arm
    if arm == SCX:
        with scheduled(_vm_level(run)):
            yield None
    elif arm.startswith(RIVAL):
        name, *options = rival_of(arm)
        with rival(RIVALS / name, options, run.scratch / "rival.log"):
            yield None
    elif not has_daemon(arm):
        yield None
    else:
        record = bench.records and bench.records / record_name(arm, run.repetition)
        if record:
            record.unlink(missing_ok=True)  # of an attempt that came too late
        with running(bench.tree, run.scratch, arm, _told(run), record, bench.inside) as controller:
            controller.await_begun()
            yield controller


def _told(run: _Attempt) -> str:
    """The daemon's configuration. Two workloads may be one domain."""
    settings = told_under(run.arm, run.bench.plan.settings, _vm_level(run))
    managed = (_managed(run, home, one.pids()) for home, one in zip(run.homes, run.works, strict=True))
    return configuration(run.arm, tuple(dict.fromkeys(filter(None, managed))), settings)


def _managed(run: _Attempt, home: TenantHome, pids: tuple[int, ...]) -> Managed | None:
    found, of_class = home.managed(pids), run.bench.plan.classes.get(run.arm)
    wanted = home.tenant.reserved_cores
    if found is None or of_class is None or wanted is None:
        return found
    return replace(found, reserved=Reserved(of_class, wanted))


def _vm_level(run: _Attempt) -> int:
    return vm_level(run.bench.tree.name, run.homes[0].tenant, run.bench.plan.layout)


def _mark(run: _Attempt) -> Mark:
    tree, blame = run.bench.tree, run.bench.blame
    with one_look():
        pids = [one.pids() for one in run.works]
    return Mark.now(
        pids,
        tree.processes(CLIENT),
        tree.processes(DAEMON),
        blame.read_s() if blame else (None,) * len(run.homes),
    )


def _result(run: _Attempt, begin: Mark, end: Mark, outcomes: Sequence[WorkDone], report: Report) -> RunResult:
    seconds = (end.at_ns - begin.at_ns) / 1e9
    machine = CpuUse.between(begin.ticks, end.ticks)
    owns = (one.own_cpu for one in outcomes)
    used = tuple(map(cores_between, begin.tenants, end.tenants, owns))
    blamed_s = map(_between, begin.blame_s, end.blame_s)
    # By their own account where we saw less: on a busy host some have ended before they are looked at.
    clients_s = max(end.clients_s - begin.clients_s, sum(one.client_cpu_s for one in outcomes))
    daemon_s = end.daemon_s - begin.daemon_s
    ours = sum(dict(zip(begin.pids, (one.cores for one in used), strict=True)).values())
    return RunResult(
        arm=run.arm,
        repetition=run.repetition,
        tenants=tuple(
            _tenant(home.tenant.name, one, cores, blame_s)
            for home, one, cores, blame_s in zip(run.homes, outcomes, used, blamed_s, strict=True)
        ),
        client_cpu_s=clients_s,
        daemon_cpu_s=daemon_s,
        busy=machine.busy,
        other_cores=machine.other_cores(
            run.bench.plan.scenario.cores, ours + (clients_s + daemon_s) / seconds
        ),
        steal=machine.stolen,
        seconds=seconds,
        decided=report.decided,
        troubles=report.troubles,
    )


def _between(begin_s: float | None, end_s: float | None) -> float | None:
    return None if begin_s is None or end_s is None else end_s - begin_s


def _tenant(name: str, done: WorkDone, used: CoresUsed, blame_s: float | None) -> TenantResult:
    return TenantResult(
        name=name,
        latencies=done.latencies or latencies(()),
        throughput_per_s=done.per_s,
        unfinished=done.unfinished,
        errors=done.errors,
        late_sends=done.late_sends,
        cores=used.cores,
        background_cores=used.background,
        blame_s=blame_s,
        waiting=used.waiting,
    )
