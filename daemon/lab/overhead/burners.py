"""Processes of synthetic vCPUs that sleep and burn, for the daemon to manage."""

from __future__ import annotations

import contextlib
import json
import math
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ...errors import ExitStatus, Refusal
from ..kit.errors import undisturbed
from ..load_tool import find_tool

VCPUS_A_WORKLOAD = 16

BUSY = 0.30
"""How busy the host is while we measure (§5.5: "the host is only 30% busy")."""

BURST_US = 500.0

REQUEST_US = 100
"""In a fan-out: CPU time of each thread for a request, short beside a burst of the background."""

AN_HOUR_S = 3600
"""A service is told how long it serves; it is ended before."""


@dataclass(frozen=True, slots=True)
class Burden:
    """How many vCPUs there are, and how each burns: bursts of `burst_us`, `rate_hz` a second, Poisson.

    `fan_out`: half of each workload serves requests together instead, for as much CPU time: there are
    wake-ups among siblings then, and a critical path."""

    vcpus: int
    burst_us: float
    rate_hz: float
    fan_out: bool = False

    @property
    def workloads(self) -> int:
        """How many processes that makes."""
        return math.ceil(self.vcpus / VCPUS_A_WORKLOAD)


def burden(vcpus: int, active: float | None, period_s: float, cores: int, *, fan_out: bool = False) -> Burden:
    """Bursts that keep the host 30 % busy; of the length that makes `active` of the vCPUs run in a period."""
    busy_us_a_second = BUSY * cores * 1e6 / vcpus
    if active is None:
        return Burden(vcpus, BURST_US, busy_us_a_second / BURST_US, fan_out)
    rate_hz = -math.log(1 - active) / period_s
    return Burden(vcpus, busy_us_a_second / rate_hz, rate_hz, fan_out)


@contextlib.contextmanager
def burning(load: Burden) -> Iterator[tuple[tuple[int, ...], ...]]:
    """The processes run while the block does; gives the pids of each workload."""
    tool = find_tool()
    speed = _speed(tool)
    processes: list[subprocess.Popen[str]] = []
    try:
        left = load.vcpus
        for number in range(load.workloads):
            threads = min(left, VCPUS_A_WORKLOAD)
            left -= threads
            with undisturbed():
                processes.append(_start(tool, threads, number, speed, load))
        for process in processes:
            _wait_ready(process)
        yield tuple((process.pid,) for process in processes)
    finally:
        with undisturbed():
            for process in processes:
                process.terminate()
            for process in processes:
                process.communicate()


def _start(tool: Path, threads: int, seed: int, speed: float, load: Burden) -> subprocess.Popen[str]:
    """A process of so many threads."""
    how = _fan_out(threads, load) if load.fan_out else _bursts(threads, load)
    return subprocess.Popen(
        [str(tool), *how, "--seed", str(seed + 1), "--iterations-per-us", f"{speed:.6f}"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def _bursts(threads: int, load: Burden) -> tuple[str, ...]:
    """Nobody wakes anybody; the main thread sleeps and is one of them."""
    return (
        *("threads", "--threads", str(max(threads - 1, 1))),
        *("--burst-us", f"{load.burst_us:.3f}", "--rate", f"{load.rate_hz:.6f}"),
    )


def _fan_out(threads: int, load: Burden) -> tuple[str, ...]:
    """Main and helpers, and as much background."""
    background = threads // 2
    serving = threads - background
    requests_hz = load.rate_hz * load.burst_us / REQUEST_US
    return (
        *("service", "--seconds", str(AN_HOUR_S), "--rate", f"{requests_hz:.6f}"),
        *("--helpers", str(serving - 1), "--serial-us", str(REQUEST_US), "--helper-us", str(REQUEST_US)),
        *("--background", str(background), "--background-burst-us", f"{load.burst_us:.3f}"),
        *("--background-rate", f"{load.rate_hz:.6f}"),
    )


def _speed(tool: Path) -> float:
    """Iterations a microsecond of the work loop, found once: many at a time slow each other."""
    command = [str(tool), "threads", "--threads", "1", "--rate", "1", "--seconds", "0.01"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    try:
        return float(json.loads(done.stdout.splitlines()[-1])["iterations_per_us"])
    except (ValueError, LookupError) as error:
        raise Refusal(ExitStatus.FAILED, f"{tool}: cannot calibrate: {done.stderr.strip()}") from error


def _wait_ready(process: subprocess.Popen[str]) -> None:
    """Its first line says that its threads exist."""
    line = process.stdout.readline() if process.stdout else ""
    if '"ready"' not in line:
        raise Refusal(ExitStatus.FAILED, f"dasec-load threads: did not start: it said {line.strip()!r}")
