"""One run: an arm in a repetition. And all runs of a demo, one after the other.

The arm `none` is the plain host: the same workloads, groups and arrivals, and no daemon. Every
other arm has the real daemon running beside the workloads.
"""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath

from ...bpf.libbpf import BpfUnavailable
from ...bpf.scx import Scheduler, options
from ..load_tool import figure
from .arms import (
    CONTROL,
    NO_LIMIT,
    NONE,
    RIVAL,
    RIVALS,
    SCX,
    on_our_scheduler,
    policy_of,
    schedule,
    settings_of,
)
from .blame import BlameWatch
from .controller import Controller, Managed, Report, configuration, running
from .errors import StartMissed, failure
from .facts import CpuTicks, CpuUse, cpu_ticks, cpu_time_s
from .layout import DAEMON, GroupLayout, groups_for, managed_group, share_of
from .process import end_within, read_json, sleep_until
from .results import Measured, RunResult, TenantResult
from .rival import rival
from .scenario import Scenario, Timing, seed_of
from .tenant import DRAIN_S, CpuUsed, Orders, Place, Running, settle, start_tenant
from .tree import Tree

CALIBRATION_SECONDS = "0.05"
LEAD_FACTORS = (1, 3, 9, 27)

LEAST_CPU_S = 1e-6
"""On an overloaded host a workload may get no time at all in a second; a ratio needs a number."""

EARLY_S = 0.03
"""Counters are read so long before the loads end by themselves: an ended thread has none."""


@dataclass(frozen=True, slots=True)
class DemoPlan:
    """Everything that a demo was asked to do."""

    scenario: Scenario
    layout: GroupLayout
    timing: Timing
    arms: tuple[str, ...]
    repetitions: int
    seed: int
    settings: Mapping[str, str] = field(default_factory=dict)
    """What the daemon is told under an arm, as TOML; where there is nothing, the arm is a policy's name."""

    @property
    def orders(self) -> tuple[tuple[str, ...], ...]:
        """The arms of each repetition in their order."""
        return schedule(self.arms, self.repetitions, self.seed)

    @property
    def total_s(self) -> float:
        """How long all runs take, about."""
        return len(self.arms) * self.repetitions * (self.timing.total_s + OVERHEAD_S)


OVERHEAD_S = 0.3
"""Stopping the daemon and removing the groups, each run (78 in 4 min 34 s: experiments/studies/demo)."""


@dataclass(frozen=True, slots=True)
class Tools:
    """The programs that make up the workloads."""

    load: Path
    memcached: Path


@dataclass(frozen=True, slots=True)
class DemoProgress:
    """Told when a run begins (its plan, arm and repetition), and several times a second between its ends."""

    begin: Callable[[int, str, int], None]
    tick: Callable[[], None]


@dataclass(frozen=True, slots=True)
class Bench:
    """What all runs of a demo, or all runs of a block of experiments/studies/loads, have in common."""

    plan: DemoPlan
    tools: Tools
    tree: Tree
    directory: Path
    calibration: float
    blame: BlameWatch | None = None
    records: Path | None = None
    """Where the daemon's record of every run is kept, if anywhere."""


STOLEN = 0.02
"""Of a run's CPU time: a run from which the hypervisor took more is made once more."""

AGAIN = 4
"""So many times in a whole demo; on a host from which it always takes much, that is how it is."""


def measure_all(
    plans: Sequence[DemoPlan],
    tools: Tools,
    tree: Tree,
    directory: Path,
    progress: DemoProgress,
    records: Path | None = None,
) -> tuple[Measured, ...]:
    """All repetitions of all arms of all plans, one repetition of each plan in turn. Raises Refusal."""
    calibration = calibrate(tools.load, directory)
    runs: list[list[RunResult]] = [[] for _ in plans]
    again = AGAIN
    for repetition in range(max(plan.repetitions for plan in plans)):
        for number, plan in enumerate(plans):
            if repetition >= plan.repetitions:
                continue
            kept = records and records / str(number)
            if kept:
                kept.mkdir(parents=True, exist_ok=True)
            bench = Bench(plan, tools, tree, directory, calibration, records=kept)
            for arm in plan.orders[repetition]:
                progress.begin(number, arm, repetition)
                run = measure_one(bench, arm, repetition, progress.tick)
                if run.steal > STOLEN and again:
                    again -= 1
                    run = measure_one(bench, arm, repetition, progress.tick)
                runs[number].append(run)
    return tuple(
        Measured(plan.arms, tuple(one.name for one in plan.scenario.tenants), plan.repetitions, tuple(found))
        for plan, found in zip(plans, runs, strict=True)
    )


def calibrate(tool: Path, directory: Path) -> float:
    """Loop iterations a microsecond of work, measured once, so that every run has the same work to do."""
    out = directory / "calibration.json"
    command = [str(tool), "service", "--seconds", CALIBRATION_SECONDS, "--warmup", "0", "--out", str(out)]
    command += ["--ready", str(directory / "calibration.ready")]
    done = subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        raise failure(f"load tool: cannot calibrate: {done.stderr.strip()}")
    return figure(read_json(out), "iterations_per_us")


def measure_one(bench: Bench, arm: str, repetition: int, tick: Callable[[], None]) -> RunResult:
    """One run; on a machine that is too slow or too busy to be ready in time, with more time."""
    lead_s = bench.plan.timing.lead_s
    for patience in LEAD_FACTORS:
        with contextlib.suppress(StartMissed):
            return _try(bench, arm, repetition, lead_s * patience, tick)
    raise failure(
        f"load tool or daemon: not ready within {lead_s * LEAD_FACTORS[-1]:g} s: is the machine overloaded?"
    )


def _try(bench: Bench, arm: str, repetition: int, lead_s: float, tick: Callable[[], None]) -> RunResult:
    plan, tree, files = bench.plan, bench.tree, bench.directory / f"{repetition}-{arm}"
    files.mkdir()
    tree.make(groups_for(plan.scenario, plan.layout, limited=arm != NO_LIMIT))
    try:
        place = Place(tree, plan.layout, bench.tools.load, bench.tools.memcached, files)
        start_ns = time.monotonic_ns() + int(lead_s * 1e9)
        tenants = []
        for index, tenant in enumerate(plan.scenario.tenants):
            seed = seed_of(plan.seed, repetition, index)
            orders = Orders(plan.timing, seed, bench.calibration, start_ns)
            tenants.append(start_tenant(place, tenant, orders))
        for one in tenants:
            settle(place, one)
        if bench.blame:
            bench.blame.follow(tenants)
        with _controlled(bench, arm, repetition, place, tenants) as controller:
            return _watch(_Watched(bench, arm, repetition, tenants, controller), start_ns, tick)
    finally:
        tree.sweep()
        shutil.rmtree(files, ignore_errors=True)


def _controlled(
    bench: Bench, arm: str, repetition: int, place: Place, tenants: Sequence[Running]
) -> AbstractContextManager[Controller | None]:
    if arm in (NONE, CONTROL, NO_LIMIT):
        return contextlib.nullcontext()
    if arm == SCX:
        return _scheduled(_vm_level(place, tenants))
    if arm.startswith(RIVAL):
        return rival(RIVALS / arm.removeprefix(RIVAL), place.directory / "rival.log")
    settings = bench.plan.settings.get(policy_of(arm))
    if arm != policy_of(arm):
        plain = settings or settings_of(policy_of(arm))
        settings = on_our_scheduler(arm, plain, _vm_level(place, tenants))
    told = configuration(arm, [_managed(place, one) for one in tenants], settings)
    record = bench.records and bench.records / record_name(arm, repetition)
    if record:
        record.unlink(missing_ok=True)  # of an attempt that came too late
    return running(place.tree, place.directory, arm, told, record)


def _vm_level(place: Place, tenants: Sequence[Running]) -> int:
    """The depth of the tenants' groups, which our scheduler takes for VMs."""
    group = PurePosixPath(place.tree.name) / managed_group(tenants[0].tenant)
    return len(group.parts) - 1


@contextlib.contextmanager
def _scheduled(vm_level: int) -> Iterator[None]:
    """Our sched_ext scheduler, and no daemon. Raises Refusal if it did not last."""
    try:
        with Scheduler(options(vm_level)) as scheduler:
            yield
            why = scheduler.ended()
    except BpfUnavailable as error:
        raise failure(f"{SCX}: {error}") from error
    if why is not None:
        raise failure(f"{SCX}: the kernel put it out: {why}")


def record_name(arm: str, repetition: int) -> str:
    """Of the file with the daemon's record of a run."""
    return f"{repetition}-{arm}.jsonl"


def _managed(place: Place, one: Running) -> Managed:
    cgroup = f"{place.tree.name}/{managed_group(one.tenant)}" if place.layout is GroupLayout.VM else None
    return Managed(one.tenant.name, share_of(one.tenant, place.layout), one.pids, cgroup)


@dataclass(frozen=True, slots=True)
class _Watched:
    bench: Bench
    arm: str
    repetition: int
    tenants: Sequence[Running]
    controller: Controller | None


@dataclass(frozen=True, slots=True)
class _Mark:
    """All CPU counters at one instant."""

    ticks: CpuTicks
    servers_s: tuple[float, ...]
    used: tuple[CpuUsed | None, ...]
    daemon_s: float
    blame_s: tuple[float | None, ...]
    at_ns: int


def _mark(watched: _Watched) -> _Mark:
    return _Mark(
        cpu_ticks(),
        tuple(cpu_time_s([one.server.pid]) for one in watched.tenants),
        tuple(one.cpu() for one in watched.tenants),
        cpu_time_s(watched.bench.tree.processes(DAEMON)),
        watched.bench.blame.read_s() if watched.bench.blame else (None,) * len(watched.tenants),
        time.monotonic_ns(),
    )


def _watch(watched: _Watched, start_ns: int, tick: Callable[[], None]) -> RunResult:
    """From the start of the load to its end."""
    timing = watched.bench.plan.timing
    begin_ns = start_ns + int(timing.warmup_s * 1e9)
    end_ns = begin_ns + int(timing.seconds * 1e9)

    def look_after() -> None:
        tick()
        for one in watched.tenants:
            one.ensure_alive(end_ns)
        if watched.controller:
            watched.controller.ensure_alive()

    sleep_until(start_ns, look_after)
    if watched.controller:  # a policy that begins within the warm-up has not settled after it
        watched.controller.ensure_begun()
    sleep_until(begin_ns, look_after)
    begin = _mark(watched)
    sleep_until(end_ns - int(EARLY_S * 1e9), look_after)
    end = _mark(watched)
    report = watched.controller.report() if watched.controller else Report()
    end_within([tool for one in watched.tenants for tool in one.tools], DRAIN_S)
    return _result(watched, begin, end, report)


def _with_cpu(result: TenantResult, before: CpuUsed | None, after: CpuUsed | None) -> TenantResult:
    """CPU time as seen from outside, in the very same time for all arms. The load tool's own counts begin
    with its first measured request and end after the last: in a backlog that is another time."""
    if before is None or after is None or before.threads != after.threads:
        return result
    seconds = (after.at_ns - before.at_ns) / 1e9
    background_s = after.background_s - before.background_s
    return replace(
        result,
        cores=max(after.total_s - before.total_s, LEAST_CPU_S) / seconds,
        background_cpu_s=background_s,
        background_cores=background_s / seconds,
    )


def _between(begin_s: float | None, end_s: float | None) -> float | None:
    return None if begin_s is None or end_s is None else end_s - begin_s


def _result(watched: _Watched, begin: _Mark, end: _Mark, report: Report) -> RunResult:
    used = [after - before for before, after in zip(begin.servers_s, end.servers_s, strict=True)]
    seconds = (end.at_ns - begin.at_ns) / 1e9
    machine = CpuUse.between(begin.ticks, end.ticks)
    blame_s = map(_between, begin.blame_s, end.blame_s)
    tenants = tuple(
        _with_cpu(replace(one.result(cpu_s / seconds), blame_s=blamed_s), before, after)
        for one, cpu_s, blamed_s, before, after in zip(
            watched.tenants, used, blame_s, begin.used, end.used, strict=True
        )
    )
    client_s = sum(one.client_cpu_s() for one in watched.tenants)
    daemon_s = end.daemon_s - begin.daemon_s
    ours = sum(one.cores for one in tenants) + (client_s + daemon_s) / seconds
    return RunResult(
        arm=watched.arm,
        repetition=watched.repetition,
        tenants=tenants,
        client_cpu_s=client_s,
        daemon_cpu_s=daemon_s,
        busy=machine.busy,
        other_cores=machine.other_cores(watched.bench.plan.scenario.cores, ours),
        steal=machine.stolen,
        seconds=seconds,
        decided=report.decided,
        troubles=report.troubles,
    )
