"""Bursts on this kernel: set where a limit has none, followed, put back, left to whoever writes them."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from dasec.hosts.host import HostSettings
from dasec.hosts.threads.host import ThreadsHost
from dasec.linux import bandwidth
from dasec.model import VcpuId
from dasec.safety.restore import put_all_back
from guests.waiting import wait_for
from tests.contract.stage import MainlineStage, roster

from .group import TestGroup
from .running import Running, burner

pytestmark = pytest.mark.host

JIFFY_US = bandwidth.jiffy_us()
THREADS = 4
CONFIG = """
policy = "none"
[bandwidth]
burst = true
[[workload]]
name = "limited"
pids = [{pid}]
"""


def quota_file(group: TestGroup) -> str:
    return bandwidth.quota_file(group.hierarchy, group.group)


def burst_of(group: TestGroup) -> int:
    return bandwidth.read_burst(bandwidth.burst_file(quota_file(group)))


def somebody_writes(group: TestGroup, burst_us: int) -> None:
    bandwidth.write_burst(bandwidth.burst_file(quota_file(group)), burst_us)


@dataclass
class Bursting:
    """Two threads in a group with a limit of one and a half CPUs."""

    stage: MainlineStage
    group: TestGroup
    host: ThreadsHost
    vcpus: list[VcpuId]

    def look(self, turns: int = 1) -> int:
        """The burst after so many more looks at all threads."""
        for _ in range(turns):
            self.host.observe(roster(self.vcpus))
        return burst_of(self.group)

    def one_more(self) -> None:
        vcpu = self.stage.spawn()
        self.group.enter(vcpu.pid)
        self.vcpus.append(vcpu)


@pytest.fixture
def bursting(stage: MainlineStage, group: TestGroup) -> Iterator[Bursting]:
    made = Bursting(stage, group, stage.make(HostSettings(burst=True)), [])
    group.limit("", 150)
    made.one_more()
    made.one_more()
    yield made
    made.host.close()
    for vcpu in made.vcpus:
        stage.end(vcpu)


def test_a_jiffy_for_each_thread_is_set_follows_their_number_and_is_put_back(bursting: Bursting) -> None:
    assert burst_of(bursting.group) == 0
    assert bursting.look() == 2 * JIFFY_US
    bursting.one_more()
    assert bursting.look() == 3 * JIFFY_US
    assert bursting.host.restore().put_back == 1
    assert (burst_of(bursting.group), bursting.stage.journal.outstanding()) == (0, ())


def test_it_follows_the_operators_limit_and_goes_with_it(bursting: Bursting) -> None:
    bursting.look()
    bandwidth.write_quota(quota_file(bursting.group), "max 100000")
    wait_for(lambda: bursting.look() == 0)
    least_us = JIFFY_US + 1000
    bandwidth.write_quota(quota_file(bursting.group), f"{least_us} 100000")
    wait_for(lambda: bursting.look() == least_us)


def test_the_kernel_refuses_a_limit_below_it_until_somebody_writes_none(bursting: Bursting) -> None:
    """As docs/bandwidth.md warns."""
    bursting.look()
    with pytest.raises(OSError, match="Invalid argument"):
        bandwidth.write_quota(quota_file(bursting.group), f"{JIFFY_US} 100000")
    somebody_writes(bursting.group, 0)
    bandwidth.write_quota(quota_file(bursting.group), f"{JIFFY_US} 100000")
    assert bursting.look(turns=3) == 0  # his from then on
    assert bursting.stage.journal.outstanding() == ()


def test_what_somebody_has_set_before_or_sets_over_ours_stays(bursting: Bursting) -> None:
    somebody_writes(bursting.group, 1234)
    assert bursting.look(turns=3) == 1234
    somebody_writes(bursting.group, 0)
    bursting.host.restore()
    assert bursting.look(turns=3) == 0


def test_what_the_journal_of_a_killed_daemon_holds_puts_it_back(bursting: Bursting) -> None:
    assert bursting.look() == 2 * JIFFY_US
    assert put_all_back(bursting.stage.journal).put_back == 1
    assert burst_of(bursting.group) == 0


@pytest.mark.parametrize("killed", [True, False], ids=["killed", "stopped"])
def test_the_daemon_sets_it_under_no_policy_at_all_and_it_is_gone_with_the_daemon(
    group: TestGroup, tmp_path: Path, killed: bool
) -> None:
    with burner(THREADS) as process:
        group.enter(process.pid)
        group.limit("", 80)
        config = tmp_path / "dasec.toml"
        config.write_text(CONFIG.format(pid=process.pid))
        with Running(tmp_path, config) as daemon:
            wait_for(lambda: burst_of(group) == THREADS * JIFFY_US)
            if killed:
                os.kill(daemon.pid, signal.SIGKILL)
                wait_for(lambda: burst_of(group) == 0)
            else:
                daemon.stop()
                assert burst_of(group) == 0
        assert bandwidth.read_quota(quota_file(group)) == "80000 100000"
