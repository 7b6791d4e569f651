"""One run: a cell under one arm. As in the demo, but with any application that has a driver."""

from __future__ import annotations

import contextlib
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from dasec.errors import Refusal
from dasec.lab import load_tool
from dasec.lab.kit.arms import CONTROL, NONE, settings_of
from dasec.lab.kit.blame import BlameWatch
from dasec.lab.kit.controller import Controller, Report, configuration, running
from dasec.lab.kit.errors import StartMissed, failure
from dasec.lab.kit.facts import CpuTicks, CpuUse, cpu_ticks, cpu_time_s
from dasec.lab.kit.layout import CLIENT, DAEMON
from dasec.lab.kit.process import sleep_until, wait_until
from dasec.lab.kit.results import RunResult, TenantResult
from dasec.lab.kit.run import EARLY_S, LEAST_CPU_S
from dasec.lab.kit.tenant import START_OPTION
from dasec.lab.kit.tree import Tree
from dasec.linux.cgroupfs import Hierarchy

from ..drivers.driver import Driver, Outcome, Running
from ..places.homes import Home, make_homes
from ..plan.oracle import ORACLE, oracle_settings
from ..plan.points import Cell, seed_for
from ..plan.schema import Experiment
from . import knobs
from .arrivals import Arrivals, digest

BEGINS_S = (0.1, 0.3, 1.0, 3.0)
"""So long before it the load is told when it begins; longer where that was too late. Arrivals stay."""

DAEMON_PATIENCE_S = 60.0
"""For the daemon's first line: on a busy machine it is late, which nobody measures."""

SETTLE_S = 0.3
"""From the beginning of the load to the first look at its threads: some applications start theirs then."""

RECORD = "dasec.jsonl"

CALIBRATED, CALIBRATION = "fanout", "iterations-per-us"
"""The driver whose work is a counted loop, and its option: one number for all runs that are compared."""


@dataclass(frozen=True, slots=True)
class Bench:
    """What all runs have in common."""

    experiment: Experiment
    drivers: Mapping[str, Driver]
    tree: Tree
    hierarchy: Hierarchy
    directory: Path
    """For the daemon's configuration and state."""
    blame: BlameWatch | None
    calibration: float
    """Loop iterations a microsecond of work."""


@dataclass(frozen=True, slots=True)
class Run:
    """Which one."""

    cell: Cell
    arm: str
    repetition: int
    folder: Path
    """Of its own, for what is kept."""


@dataclass(frozen=True, slots=True)
class Measured:
    """What a run has shown."""

    result: RunResult
    arrivals: Arrivals


@dataclass(frozen=True, slots=True)
class _Up:
    """An instance that is up."""

    home: Home
    running: Running


@dataclass(frozen=True, slots=True)
class _Mark:
    """All CPU counters at one instant."""

    ticks: CpuTicks
    used_s: tuple[float, ...]
    clients_s: float
    daemon_s: float
    blame_s: tuple[float | None, ...]
    at_ns: int


def settings_for(experiment: Experiment, cell: Cell, arm: str) -> str:
    """What the daemon is told under an arm."""
    for own in experiment.arm:
        if own.name == arm:
            return own.settings
    if arm == ORACLE:
        return oracle_settings(cell.critical)
    return settings_of(arm)


def measure(bench: Bench, run: Run) -> Measured:
    """One run; on a machine that is too slow or too busy to begin in time, with more time."""
    for begin_s in BEGINS_S:
        with contextlib.suppress(StartMissed):
            return _try(bench, run, begin_s)
    raise failure(f"load tool: not told within {BEGINS_S[-1]:g} s when to begin: is the machine overloaded?")


def _try(bench: Bench, run: Run, begin_s: float) -> Measured:
    shutil.rmtree(run.folder, ignore_errors=True)
    run.folder.mkdir(parents=True)
    ups: list[_Up] = []
    try:
        homes = make_homes(bench.tree, run.cell, bench.experiment.cores)
        for index, home in enumerate(homes):
            ups.append(_Up(home, _start(bench, run, home, index)))
        return _watch(bench, run, ups, begin_s)
    except Refusal as refusal:
        if START_OPTION in str(refusal):
            raise StartMissed from refusal
        raise
    finally:
        for up in ups:
            up.running.stop()
        bench.tree.sweep()
        for left in bench.directory.iterdir():
            shutil.rmtree(left) if left.is_dir() else left.unlink()


def _start(bench: Bench, run: Run, home: Home, index: int) -> Running:
    experiment, instance = bench.experiment, home.instance
    order = instance.order(
        seed_for(experiment, run.cell, run.repetition, index),
        experiment.warmup_s,
        experiment.seconds,
        run.folder / instance.name,
    )
    if instance.workload.driver == CALIBRATED:
        order = replace(order, options={CALIBRATION: repr(bench.calibration), **order.options})
    return bench.drivers[instance.workload.driver].start(order, home.place(bench.directory, run.folder))


def _watch(bench: Bench, run: Run, ups: Sequence[_Up], begin_s: float) -> Measured:
    """From the beginning of the load to its end."""

    def look_after() -> None:
        for up in ups:
            up.running.ensure_alive()

    _settle(ups)
    with _controlled(bench, run, ups) as controller:
        start_ns = time.monotonic_ns() + int(begin_s * 1e9)
        for up in ups:
            up.running.begin(start_ns)
        begin_ns = start_ns + int(bench.experiment.warmup_s * 1e9)
        sleep_until(min(begin_ns, start_ns + int(SETTLE_S * 1e9)), look_after)
        _settle(ups)
        sleep_until(begin_ns, look_after)
        _settle(ups)
        if bench.blame:
            bench.blame.follow([up.home for up in ups])
        begin = _mark(bench, ups)
        sleep_until(begin_ns + int((bench.experiment.seconds - EARLY_S) * 1e9), look_after)
        end = _mark(bench, ups)
        report = controller.report() if controller else Report()
        found = {up.home.instance.name: up.home.vcpus for up in ups}
        knobs.write(run.folder, knobs.look(bench.tree, bench.hierarchy, found))
        outcomes = [up.running.finish() for up in ups]
    result = _result(bench, run, (begin, end), outcomes, report)
    names = [up.home.instance.name for up in ups]
    arrivals = {name: digest(one.arrivals) for name, one in zip(names, outcomes, strict=True) if one.arrivals}
    return Measured(result, arrivals)


def _settle(ups: Sequence[_Up]) -> None:
    for up in ups:
        up.home.settle(up.running.pids())


@contextlib.contextmanager
def _controlled(bench: Bench, run: Run, ups: Sequence[_Up]) -> Iterator[Controller | None]:
    """The daemon, where the arm has one, at work. Who has no process yet is known to it by its group."""
    if run.arm in (NONE, CONTROL):
        yield None
        return
    managed = [one for up in ups if (one := up.home.managed(up.running.pids()))]
    told = configuration(run.arm, managed, settings_for(bench.experiment, run.cell, run.arm))
    with running(bench.tree, bench.directory, run.arm, told, run.folder / RECORD) as controller:
        wait_until(lambda: _has_begun(controller), f"dasec run, {run.arm}: begins", DAEMON_PATIENCE_S)
        yield controller


def _has_begun(controller: Controller) -> bool:
    controller.ensure_alive()
    return controller.log.stat().st_size > 0


def _mark(bench: Bench, ups: Sequence[_Up]) -> _Mark:
    return _Mark(
        cpu_ticks(),
        tuple(cpu_time_s(up.running.pids()) for up in ups),
        cpu_time_s(bench.tree.processes(CLIENT)),
        cpu_time_s(bench.tree.processes(DAEMON)),
        bench.blame.read_s() if bench.blame else (None,) * len(ups),
        time.monotonic_ns(),
    )


def _result(
    bench: Bench, run: Run, marks: tuple[_Mark, _Mark], outcomes: Sequence[Outcome], report: Report
) -> RunResult:
    begin, end = marks
    seconds = (end.at_ns - begin.at_ns) / 1e9
    machine = CpuUse.between(begin.ticks, end.ticks)
    used = [max(LEAST_CPU_S, after - before) for before, after in zip(begin.used_s, end.used_s, strict=True)]
    blamed = [
        None if before is None or after is None else after - before
        for before, after in zip(begin.blame_s, end.blame_s, strict=True)
    ]
    clients_s = clients_used_s(end.clients_s - begin.clients_s, outcomes)
    daemon_s = end.daemon_s - begin.daemon_s
    ours = (sum(used) + clients_s + daemon_s) / seconds
    return RunResult(
        arm=run.arm,
        repetition=run.repetition,
        tenants=tuple(
            _tenant(instance.name, outcome, used_s / seconds, blame_s)
            for instance, outcome, used_s, blame_s in zip(
                run.cell.instances, outcomes, used, blamed, strict=True
            )
        ),
        client_cpu_s=clients_s,
        daemon_cpu_s=daemon_s,
        busy=machine.busy,
        other_cores=machine.other_cores(bench.experiment.cores, ours),
        steal=machine.stolen,
        seconds=seconds,
        decided=report.decided,
        troubles=report.troubles,
    )


def clients_used_s(seen_s: float, outcomes: Sequence[Outcome]) -> float:
    """By their own account where we saw less: on a busy host some have ended before they are looked at."""
    return max(seen_s, sum(one.client_cpu_s for one in outcomes))


def _tenant(name: str, outcome: Outcome, cores: float, blame_s: float | None) -> TenantResult:
    return TenantResult(
        name=name,
        latencies=outcome.latencies or load_tool.latencies(()),
        throughput_per_s=outcome.per_s,
        unfinished=outcome.unfinished,
        errors=outcome.errors,
        late_sends=outcome.late_sends,
        cores=cores,
        background_cpu_s=0.0,
        blame_s=blame_s,
    )
