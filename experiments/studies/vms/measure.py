"""One run: an arm in a repetition, with clients outside and inside of every guest."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from dasec.errors import ExitStatus, Refusal
from dasec.lab.kit.arms import CONTROL, NONE, settings_of
from dasec.lab.kit.controller import Controller, Report
from dasec.lab.kit.facts import cpu_ticks, cpu_time_s
from dasec.lab.kit.process import wait_until
from dasec.lab.kit.results import RunResult, TenantResult
from dasec.lab.kit.scenario import Timing, seed_of
from dasec.lab.load_tool import PERCENTILES, Latencies, figure, find_tool
from guests.memcached import PREFIX, Guest

from .fleet import MEMCACHED, Fleet, ask

OUTSIDE, INSIDE = "outside", "inside"
"""Where the client is; the first part of what it measures is called."""

WORKLOAD = f'\n[[workload]]\nname = "vms"\nlibvirt = "{PREFIX}*"\n'
BURST_US = 10_000
PATIENCE_S = 120.0
"""For the daemon's first line, and for its end: on a busy machine both are late, and neither is measured."""


@dataclass(frozen=True, slots=True)
class Load:
    """What every guest has to do: requests from outside, as many from inside, and bursts of other work."""

    rate_per_s: float
    bursts_per_s: float
    calibration: float
    timing: Timing

    def client(self, seed: int) -> str:
        """Options of a client."""
        timing = self.timing
        return (
            f"memcached --keys 50 --rate {self.rate_per_s:g} --seconds {timing.seconds:g}"
            f" --warmup {timing.warmup_s:g} --seed {seed} --drain-seconds 30"
        )

    def script(self, seed: int) -> str:
        """What the guest is told: background that outlasts the client, and the client."""
        return (
            f"dasec-load service --rate 1e-6 --helpers 0 --warmup 0 --seconds {self.timing.total_s:g}"
            f" --background 2 --background-burst-us {BURST_US} --background-rate {self.bursts_per_s / 2:g}"
            f" --iterations-per-us {self.calibration!r} --seed {seed}"
            f" </dev/null >/dev/null 2>&1 &\ndasec-load {self.client(seed)} 2>&1"
        )


@dataclass(frozen=True, slots=True)
class _Mark:
    """CPU counters at one instant."""

    at_ns: int
    total: int
    idle: int
    stolen: int
    guests_s: tuple[float, ...]
    daemon_s: float


def measure(fleet: Fleet, load: Load, arm: str, repetition: int, seed: int, folder: Path) -> RunResult:
    """All guests of the fleet at once. Each is two tenants of the result: `outside-0` and `inside-0`."""
    with _controlled(fleet, arm, folder) as controller, ThreadPoolExecutor(2 * len(fleet.guests)) as pool:
        answers: list[tuple[str, int, Future[Mapping[str, object]]]] = []
        for index, one in enumerate(fleet.guests):
            own = seed_of(seed, repetition, index)
            answers.append((INSIDE, index, pool.submit(ask, one, load.script(own))))
            answers.append((OUTSIDE, index, pool.submit(_from_outside, one, load.client(own + 500))))
        time.sleep(load.timing.lead_s + load.timing.warmup_s)
        begin = _mark(fleet, controller)
        time.sleep(load.timing.seconds - load.timing.lead_s)
        end = _mark(fleet, controller)
        report = controller.report() if controller else Report()
        results = [(where, index, answer.result()) for where, index, answer in answers]
    seconds = (end.at_ns - begin.at_ns) / 1e9
    used = [(after - before) / seconds for before, after in zip(begin.guests_s, end.guests_s, strict=True)]
    daemon_s = end.daemon_s - begin.daemon_s
    total = max(1, end.total - begin.total)
    busy = 1 - (end.idle - begin.idle) / total
    return RunResult(
        arm=arm,
        repetition=repetition,
        tenants=tuple(_tenant(f"{where}-{index}", said, used[index]) for where, index, said in results),
        client_cpu_s=sum(figure(said, "cpu", "total_s") for where, _, said in results if where == OUTSIDE),
        daemon_cpu_s=daemon_s,
        busy=busy,
        other_cores=0.0,
        steal=(end.stolen - begin.stolen) / total,
        seconds=seconds,
        decided=report.decided,
        troubles=report.troubles,
    )


def seen_from(where: str, run: RunResult) -> RunResult:
    """The run with what the clients there measured."""
    return replace(run, tenants=tuple(one for one in run.tenants if one.name.startswith(where)))


def _tenant(name: str, said: Mapping[str, object], cores: float) -> TenantResult:
    names = {key: int(figure(said, "latency_ns", key)) for key in PERCENTILES}
    completed = int(figure(said, "completed"))
    return TenantResult(
        name=name,
        latencies=Latencies("", completed, figure(said, "latency_ns", "mean"), names),
        throughput_per_s=figure(said, "throughput_per_s"),
        unfinished=int(figure(said, "unfinished")),
        errors=int(figure(said, "errors")),
        late_sends=int(figure(said, "late_sends")),
        cores=cores,
        background_cpu_s=0.0,
    )


def _from_outside(one: Guest, options: str) -> Mapping[str, object]:
    command = [str(find_tool()), *options.split(), "--port", str(one.ports[MEMCACHED])]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Refusal(ExitStatus.FAILED, f"vms: {one.name}: client: {done.stderr.strip()}")
    result: Mapping[str, object] = json.loads(done.stdout.splitlines()[-1])
    return result


def _mark(fleet: Fleet, controller: Controller | None) -> _Mark:
    ticks = cpu_ticks()
    return _Mark(
        time.monotonic_ns(),
        ticks.total,
        ticks.idle,
        ticks.stolen,
        tuple(cpu_time_s([fleet.pid(one)]) for one in fleet.guests),
        cpu_time_s([controller.process.pid]) if controller else 0.0,
    )


@contextlib.contextmanager
def _controlled(fleet: Fleet, arm: str, folder: Path) -> Iterator[Controller | None]:
    """The daemon beside libvirtd, for the arms that have one."""
    if arm in (NONE, CONTROL):
        yield None
        return
    config, log, state = folder / "dasec.toml", folder / "dasec.log", folder / "state"
    config.write_text(settings_of(arm) + WORKLOAD, encoding="utf-8")
    command = (sys.executable, "-m", "dasec", "run", "--config", config, "--directory", state)
    with log.open("wb") as output:
        inside = fleet.libvirtd.inside(*command)
        process = subprocess.Popen(inside, stdout=output, stderr=subprocess.STDOUT, cwd="/")
    controller = Controller(arm, process, log, state)
    try:
        wait_until(lambda: log.stat().st_size > 0, f"vms: dasec run, {arm}", PATIENCE_S)
        yield controller
        controller.ensure_alive()
    finally:
        process.send_signal(signal.SIGTERM)
        status = process.wait(PATIENCE_S)
    if status != 0:
        raise Refusal(ExitStatus.FAILED, f"vms: dasec run, {arm}: exit status {status}: {log} says why")
