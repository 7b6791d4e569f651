"""What caps are for: a service below a limit, with the whole daemon."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from dasec.hosts.probe.binding import binding_limits
from dasec.lab.load_tool import find_tool
from dasec.linux import bandwidth
from guests.waiting import wait_for

from .group import TestGroup
from .running import Running

pytestmark = pytest.mark.host

CONFIG = """
period_ms = 80
[host]
own_cgroups = true
weights = "on"
[bandwidth]
caps = true
[guard]
enabled = false
[[workload]]
name = "limited"
pids = [{pid}]
"""


@contextmanager
def service(group: TestGroup, place: Path) -> Iterator[subprocess.Popen[str]]:
    """One that serves a few requests beside three threads that always compute, all below one limit."""
    options = [
        "--seconds",
        "60",
        "--rate",
        "60",
        "--helpers",
        "1",
        "--serial-us",
        "1000",
        "--helper-us",
        "500",
    ]
    options += ["--background", "3", "--background-burst-us", "20000", "--background-rate", "60"]
    command = [str(find_tool()), "service", *options, "--out", str(place / "out")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        group.enter(process.pid)
        try:
            yield process
        finally:
            process.kill()


def threads_of(process: subprocess.Popen[str]) -> dict[str, int]:
    assert process.stdout is not None
    found: dict[str, int] = json.loads(process.stdout.readline())["threads"]
    return found


def cpu_ns(tid: int) -> int:
    return int(Path(f"/proc/{tid}/schedstat").read_text().split()[0])


def measured(group: TestGroup, threads: dict[str, int], seconds: float) -> tuple[float, float, float]:
    """For how long the limit stops threads, and what the background and the others use, in CPUs."""
    begun_ns, before = time.monotonic_ns(), {name: cpu_ns(tid) for name, tid in threads.items()}
    stopped = bandwidth.usage_of(str(group.directory)).throttled_ns
    time.sleep(seconds)
    took_ns = time.monotonic_ns() - begun_ns
    used = {name: (cpu_ns(tid) - before[name]) / took_ns for name, tid in threads.items()}
    stopped = bandwidth.usage_of(str(group.directory)).throttled_ns - stopped
    background = sum(cpus for name, cpus in used.items() if name.startswith("bg-"))
    return stopped / took_ns, background, sum(used.values()) - background


def test_where_a_limit_binds_the_background_is_capped_and_the_limit_stops_nobody(
    group: TestGroup, tmp_path: Path
) -> None:
    with service(group, tmp_path) as process:
        group.limit("", 80)
        threads = threads_of(process)
        config = tmp_path / "dasec.toml"
        config.write_text(CONFIG.format(pid=process.pid))
        stopped_before, _, _ = measured(group, threads, 2)
        with Running(tmp_path, config) as daemon:
            wait_for(lambda: daemon.status()["knobs_held"]["cap"] == 3)
            time.sleep(2)  # the reserve has found its mean
            stopped, background, others = measured(group, threads, 4)
            assert background + others <= 0.8 * 1.02
            assert background >= 0.9 * (0.8 - others)
            assert stopped <= stopped_before / 3
            (workload,) = daemon.status()["workloads"]
            assert (workload["limit_ppm"], workload["capped"]) == (800_000, 3)
            assert workload["throttled_ms"] > 0
            daemon.stop()
        assert group.below() == []


def test_a_probe_tells_which_limits_stop_threads_now(group: TestGroup, tmp_path: Path) -> None:
    with service(group, tmp_path) as process:
        group.limit("", 50)
        threads_of(process)
        told = {one.group: one for one in binding_limits()}
        assert told[group.group].cores == 0.5
        assert told[group.group].stopped > 0
        assert 0 < told[group.group].stopped_periods <= told[group.group].periods + 1


def test_caps_of_a_killed_daemon_are_put_back_by_its_keeper(group: TestGroup, tmp_path: Path) -> None:
    with service(group, tmp_path) as process:
        group.limit("", 80)
        threads_of(process)
        config = tmp_path / "dasec.toml"
        config.write_text(CONFIG.format(pid=process.pid))
        with Running(tmp_path, config) as daemon:
            wait_for(lambda: daemon.status()["knobs_held"]["cap"] == 3)
            os.kill(daemon.pid, signal.SIGKILL)
            wait_for(lambda: group.below() == [])
