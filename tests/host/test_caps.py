"""Caps on this kernel: set, shown, put back exactly, left to whoever writes them; and what they are for."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from dasec.hosts.host import HostSettings
from dasec.hosts.probe.binding import binding_limits
from dasec.hosts.threads.host import ThreadsHost
from dasec.lab.load_tool import find_tool
from dasec.linux import bandwidth
from dasec.model import Change, Knob, Outcome, Snapshot, VcpuId
from guests.waiting import wait_for
from tests.contract.stage import MainlineStage, roster

from .group import TestGroup
from .running import Running

pytestmark = pytest.mark.host

CONFIG = """
period_ms = 80
[host]
own_cgroups = true
[bandwidth]
caps = true
[guard]
enabled = false
[[workload]]
name = "limited"
pids = [{pid}]
"""


@dataclass
class Capped:
    """Two threads in a group with a limit, one of them alone in a group with a period of its own."""

    stage: MainlineStage
    group: TestGroup
    host: ThreadsHost
    alone: VcpuId
    other: VcpuId

    def see(self) -> Snapshot:
        return self.host.observe(roster([self.alone, self.other]))

    def cap(self, vcpu: VcpuId, ppm: int, before: int = 0) -> Outcome:
        (result,) = self.host.apply([Change(vcpu, Knob.CAP, before, ppm, "test")])
        return result.outcome

    def quota(self, below: str) -> str:
        return bandwidth.read_quota(self.file(below))

    def file(self, below: str) -> str:
        return bandwidth.quota_file(self.group.hierarchy, f"{self.group.group}/{below}")


@pytest.fixture
def capped(stage: MainlineStage, group: TestGroup) -> Iterator[Capped]:
    host = stage.make(HostSettings(own_groups=True, caps=True))
    alone, other = stage.spawn(), stage.spawn()
    group.enter(other.pid)
    group.enter(alone.pid, "vcpu0")
    group.limit("", 150)
    made = Capped(stage, group, host, alone, other)
    bandwidth.write_quota(made.file("vcpu0"), "max 50000")
    yield made
    host.close()
    for vcpu in (alone, other):
        stage.end(vcpu)


def test_a_cap_is_set_shown_changed_and_taken_away_with_the_period_as_it_was(capped: Capped) -> None:
    limits = capped.see().limits["w0"]
    assert limits.around_ppm == 1_500_000
    assert {vcpu: own.present_ppm for vcpu, own in limits.own.items()} == {capped.alone: 0, capped.other: 0}
    assert capped.cap(capped.alone, 300_000) is Outcome.APPLIED
    assert capped.quota("vcpu0") == "3000 10000"
    assert capped.see().limits["w0"].own[capped.alone].present_ppm == 300_000
    assert capped.cap(capped.alone, 50_000, 300_000) is Outcome.APPLIED
    assert capped.quota("vcpu0") == "2500 50000"
    assert capped.cap(capped.alone, 0, 50_000) is Outcome.APPLIED
    assert capped.quota("vcpu0") == "max 50000"
    assert capped.stage.journal.outstanding() == ()


def test_a_thread_without_a_group_gets_one_for_its_cap_and_loses_it_at_the_end(capped: Capped) -> None:
    capped.see()
    assert capped.cap(capped.other, 300_000) is Outcome.APPLIED
    own = f"dasec-{capped.other.tid}"
    assert (capped.group.below(), capped.quota(own)) == ([own, "vcpu0"], "3000 10000")
    capped.host.restore()
    assert capped.group.below() == ["vcpu0"]
    assert capped.stage.group_of(capped.other) == capped.group.group


def test_a_quota_that_somebody_else_wrote_over_ours_stays(capped: Capped) -> None:
    capped.see()
    capped.cap(capped.alone, 300_000)
    bandwidth.write_quota(capped.file("vcpu0"), "7000 20000")
    wait_for(lambda: capped.alone not in capped.see().limits["w0"].own)
    assert capped.cap(capped.alone, 200_000) is Outcome.YIELDED
    capped.host.restore()
    assert capped.quota("vcpu0") == "7000 20000"


def test_a_limit_that_the_operator_changes_is_followed(capped: Capped) -> None:
    assert capped.see().limits["w0"].around_ppm == 1_500_000
    capped.group.limit("", 120)
    assert capped.see().limits["w0"].around_ppm == 1_200_000
    bandwidth.write_quota(bandwidth.quota_file(capped.group.hierarchy, capped.group.group), "max 100000")
    assert capped.see().limits == {}


def test_who_has_a_quota_of_its_own_is_not_capped(capped: Capped) -> None:
    bandwidth.write_quota(capped.file("vcpu0"), "20000 50000")
    assert list(capped.see().limits["w0"].own) == [capped.other]


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
