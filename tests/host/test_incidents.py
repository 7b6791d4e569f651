"""What befalls a running daemon: it is stopped, gets no core, loses a group, meets thousands of threads."""

from __future__ import annotations

import os
import signal
import time
from functools import partial
from pathlib import Path

import pytest

from dasec.errors import ExitStatus
from dasec.gap import LONGEST_NS
from dasec.linux import cgroupfs, schedattr
from guests.waiting import wait_for
from tests.chaos.test_chaos import SHUFFLE

from ..unit.service.command import configuration, dasec
from .group import TestGroup
from .running import Running, burner

pytestmark = pytest.mark.host

# The guard would take the policy off and put it on again.
PAPER = (
    'policy = "dasec"\nperiod_ms = 20\n[guard]\nenabled = false\n[host]\nown_cgroups = true\nweights = "on"\n'
)
CROWD = 4096


def slices_ns(pid: int) -> dict[int, int]:
    """Of each thread of a process."""
    return {int(tid): schedattr.get(int(tid)).slice_ns for tid in os.listdir(f"/proc/{pid}/task")}


def clean(daemon: Running) -> bool:
    """Does the kernel hold what it should?"""
    return dasec("verify", "--directory", daemon.state).status == ExitStatus.DONE


def _has_said_so(daemon: Running, times: int) -> bool:
    return daemon.said("workload a matches no thread") == times


def test_a_daemon_that_was_stopped_says_so_leaves_the_knobs_and_goes_on(tmp_path: Path) -> None:
    """What a suspended machine is for it, too: its clock is ahead and nothing was seen."""
    with burner() as process:
        config = configuration(tmp_path, PAPER, f"pids = [{process.pid}]")
        before = slices_ns(process.pid)
        with Running(tmp_path, config) as daemon:
            daemon.wait_for_work()
            os.kill(daemon.pid, signal.SIGSTOP)
            held = slices_ns(process.pid)
            time.sleep(LONGEST_NS / 1e9 + 0.5)
            assert slices_ns(process.pid) == held != before
            os.kill(daemon.pid, signal.SIGCONT)
            daemon.wait_to_say("saw nothing for")
            seen = daemon.status()["periods"]
            wait_for(lambda: daemon.status()["periods"] > seen + 5)
            daemon.stop()
        assert slices_ns(process.pid) == before
    assert daemon.said("saw nothing for") == 1
    assert daemon.said("overloaded") == 0
    assert clean(daemon)


def test_a_daemon_that_gets_no_core_skips_periods_and_says_that_the_host_is_overloaded(
    tmp_path: Path, group: TestGroup
) -> None:
    with burner() as process:
        config = configuration(tmp_path, PAPER, f"pids = [{process.pid}]")
        before = slices_ns(process.pid)
        with Running(tmp_path, config) as daemon:
            daemon.wait_for_work()
            group.enter(daemon.pid, "starved")
            group.limit("starved", 1)
            daemon.wait_to_say("host overloaded: ")
            assert daemon.status()["late_periods"] > 0
            group.limit("starved", 100)
            daemon.stop()
        assert slices_ns(process.pid) == before
    assert daemon.said("host overloaded: ") == 1
    assert clean(daemon)


def test_a_group_that_is_removed_is_one_line_and_is_managed_again_when_it_is_back(
    tmp_path: Path, group: TestGroup
) -> None:
    web = group.directory / "web"
    web.mkdir()
    # Changes weights in any case: a group for each thread, also on a kernel that starves groups.
    shuffles = PAPER.replace('"dasec"', '"shuffle"')
    config = configuration(tmp_path, shuffles, f'cgroup = "{group.group}/web"')
    with Running(tmp_path, config, str(SHUFFLE)) as daemon:
        for lives in (2, 3):
            with burner() as process:
                group.enter(process.pid, "web")
                wait_for(lambda: any(web.glob("dasec-*")))
            wait_for(lambda: cgroupfs.remove_group(str(web)))
            wait_for(partial(_has_said_so, daemon, lives))
        wait_for(lambda: daemon.status()["workloads"][0]["vcpus"] == 0)
        daemon.stop()
    assert daemon.said("Traceback") == 0
    assert clean(daemon)


def test_four_thousand_threads_at_once_are_all_managed_and_all_put_back(
    tmp_path: Path, group: TestGroup
) -> None:
    (group.directory / "web").mkdir()
    alone = PAPER.replace("true", "false")  # no group for each
    config = configuration(tmp_path, alone, f'cgroup = "{group.group}/web"')
    with Running(tmp_path, config) as daemon, burner(CROWD, rate=0.1) as process:
        before = slices_ns(process.pid)
        assert len(before) == CROWD
        group.enter(process.pid, "web")
        daemon.wait_to_say("workload a: 4096 vCPUs, 0 before: all that its bound allows are managed")
        wait_for(lambda: daemon.status()["workloads"][0]["vcpus"] == CROWD)
        wait_for(lambda: slices_ns(process.pid) != before)
        daemon.stop()
        assert slices_ns(process.pid) == before
    assert clean(daemon)
