"""Loans of the whole daemon, on real threads with equal quotas: lent, and back exactly after a kill."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from dasec.lab.kit.tree import Group, Tree
from dasec.linux import bandwidth
from guests.waiting import wait_for

from .group import TestGroup
from .limited import ALWAYS, CAPS, WORKLOAD, Threads, serving
from .running import Running

pytestmark = pytest.mark.host

GIVEN_CORES = 0.3
GIVEN = "30000 100000"
SERVICE = f"--rate 250 --helpers 1 --serial-us 300 --helper-us 2000 --background 3 {ALWAYS}"
"""Its helper would use half a CPU."""


@dataclass
class Vm:
    """A process whose threads have a group with a quota each."""

    tree: Tree
    threads: Threads
    pid: int

    def quota(self, name: str) -> str:
        return bandwidth.read_quota(self.file(name))

    def quotas(self) -> dict[str, str]:
        return {name: self.quota(name) for name in self.threads}

    def file(self, name: str) -> str:
        file = "cpu.cfs_quota_us" if self.tree.version == 1 else "cpu.max"
        return str(self.tree.directory(name) / file)


@pytest.fixture
def vm(group: TestGroup, tmp_path: Path) -> Iterator[Vm]:
    with serving(SERVICE, tmp_path / "out") as (pid, threads):
        group.enter(pid)
        tree = Tree(group.hierarchy.version, group.directory, group.group)
        tree.make(Group(name, threaded=True, quota_cores=GIVEN_CORES) for name in threads)
        for name, tid in threads.items():
            tree.place(tid, name)
        yield Vm(tree, threads, pid)


def test_a_stopped_helper_borrows_and_a_killed_daemon_leaves_every_quota_as_it_was_last_given(
    vm: Vm, tmp_path: Path
) -> None:
    assert set(vm.quotas().values()) == {GIVEN}
    config = tmp_path / "dasec.toml"
    config.write_text(CAPS + WORKLOAD.format(name="divided", pid=vm.pid))
    helper = next(name for name in vm.threads if name.startswith("helper"))
    background = [name for name in vm.threads if name.startswith("bg-")]
    with Running(tmp_path, config) as daemon:
        wait_for(lambda: bandwidth.cores_of(vm.quota(helper)) > 1.3 * GIVEN_CORES)
        assert all(bandwidth.cores_of(vm.quota(name)) < GIVEN_CORES for name in background)
        assert sum(map(bandwidth.cores_of, vm.quotas().values())) <= len(vm.threads) * GIVEN_CORES
        bandwidth.write_quota(vm.file(background[0]), "35000 100000")  # the operator
        os.kill(daemon.pid, signal.SIGKILL)
        expected = dict.fromkeys(vm.threads, GIVEN) | {background[0]: "35000 100000"}
        wait_for(lambda: vm.quotas() == expected)
