"""Partial mode: the threads of workloads are our scheduler's, all others stay the kernel's own."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from dasec.bpf.scx import Scheduler, options
from dasec.errors import ExitStatus
from dasec.hosts.host import HostSettings
from dasec.hosts.sched_ext import SchedExt
from dasec.linux import procfs, schedattr
from dasec.linux.sched_ext import SYSFS, state
from dasec.linux.schedattr import SCHED_BATCH, SCHED_EXT, SCHED_OTHER
from dasec.safety.fingerprint import differences, fingerprint
from dasec.safety.journal.journal import Journal
from guests.waiting import wait_for as wait_until
from tests.contract.stage import probed_with_scheduler, roster
from tests.kin import children

from ..unit.service.command import configuration, dasec
from .machine import HOG, NEEDS_SCHED_EXT, SHARES_S, Vm, identity, used_meanwhile, wait_for

pytestmark = NEEDS_SCHED_EXT

SETTINGS = (
    'period_ms = 200\npolicy = "none"\nbudget_percent = 100\n[host]\nbackend = "sched_ext"\npartial = true\n'
)
SLICE_NS = 5_000_000

IDLER = "import time; time.sleep(1000)"
"""One that computed would slow the start of the daemon: this machine's CPUs are one of its host's."""

FAMILY = """
import subprocess, threading
def beget():
    while True:
        subprocess.run(["sleep", "1"])
for _ in range(2): threading.Thread(target=beget).start()
subprocess.Popen(["sleep", "1000"])
"""
"""Has children all the time, and one that stays."""


def pids_of(vm: Vm) -> list[int]:
    return [int(line) for line in (vm.path / "cgroup.procs").read_text().split()]


def policies_of(pids: Sequence[int]) -> set[int]:
    found = set()
    for pid in pids:
        for tid in procfs.thread_ids(pid):
            try:
                found.add(schedattr.policy_of(tid))
            except ProcessLookupError:
                continue
    return found


@pytest.fixture
def host(tmp_path: Path) -> Iterator[SchedExt]:
    journal, _ = Journal.open(tmp_path / "journal")
    host = SchedExt(journal, probed_with_scheduler(), HostSettings(partial=True))
    yield host
    host.close()
    journal.close()
    wait_for("disabled")


def test_only_the_threads_of_a_workload_are_scheduled(host: SchedExt, vms: dict[str, Vm]) -> None:
    for name in ("ours", "theirs"):
        vms[name] = Vm(name)
        vms[name].run(HOG, {0} if name == "ours" else {1})
    host.observe(roster([identity(one.pid) for one in vms["ours"].programs]))
    assert policies_of(pids_of(vms["ours"])) == {SCHED_EXT}
    assert policies_of([*pids_of(vms["theirs"]), os.getpid(), 1]) == {SCHED_OTHER}
    assert (SYSFS / "switch_all").read_text().strip() == "0"
    used = used_meanwhile(vms)
    assert min(used.values()) > 0.5 * SHARES_S
    host.restore()
    assert policies_of(pids_of(vms["ours"])) == {SCHED_OTHER}


def test_policy_nice_and_slice_are_as_before_when_it_is_over(host: SchedExt, vms: dict[str, Vm]) -> None:
    vms["ours"] = vm = Vm("ours")
    for _ in range(3):
        vm.run(HOG)
    niced, sliced, batch = vm.programs
    os.setpriority(os.PRIO_PROCESS, niced.pid, 5)
    schedattr.set_slice(sliced.pid, SLICE_NS)
    os.sched_setscheduler(batch.pid, SCHED_BATCH, os.sched_param(0))
    before = fingerprint(pids_of(vm))
    host.observe(roster([identity(one.pid) for one in vm.programs]))
    (changed_niced, changed_sliced, changed_batch) = (schedattr.get(one.pid) for one in vm.programs)
    assert (changed_niced.policy, changed_niced.nice) == (SCHED_EXT, 5)
    assert (changed_sliced.policy, changed_sliced.slice_ns) == (SCHED_EXT, SLICE_NS)
    assert changed_batch.policy == SCHED_EXT
    host.restore()
    assert differences(before, fingerprint(pids_of(vm))) == ()


def test_a_policy_that_somebody_else_gives_is_theirs(host: SchedExt, vms: dict[str, Vm]) -> None:
    vms["ours"] = vm = Vm("ours")
    vm.run(HOG)
    vcpus = [identity(one.pid) for one in vm.programs]
    host.observe(roster(vcpus))
    os.sched_setscheduler(vcpus[0].pid, SCHED_BATCH, os.sched_param(0))
    for _ in range(3):
        host.observe(roster(vcpus))
    assert policies_of(pids_of(vm)) == {SCHED_BATCH}
    assert any(line.startswith("policy of") and "somebody else" in line for line in host.notices())
    host.restore()
    assert policies_of(pids_of(vm)) == {SCHED_BATCH}


def test_a_hog_that_is_nobodys_starves_ours_until_the_kernels_own_is_back(
    host: SchedExt, vms: dict[str, Vm]
) -> None:
    for name in ("ours", "theirs"):
        vms[name] = Vm(name)
        vms[name].run(HOG, {1})
    vcpus = [identity(one.pid) for one in vms["ours"].programs]
    host.observe(roster(vcpus))
    used = used_meanwhile(vms)
    assert used["theirs"] > 5 * used["ours"]
    wait_for("disabled", 12)
    host.observe(roster(vcpus))
    assert any("was put out" in line and "stall" in line for line in host.notices())
    assert policies_of(pids_of(vms["ours"])) == {SCHED_OTHER}
    used = used_meanwhile(vms)
    assert used["ours"] / sum(used.values()) == pytest.approx(0.5, abs=0.15)


@contextmanager
def daemon_that_has(vm: Vm, folder: Path, *command: str) -> Iterator[subprocess.Popen[bytes]]:
    """A daemon, from when all of this VM's threads are its scheduler's."""
    arguments = [*command, "--directory", str(folder / "state")]
    with subprocess.Popen([sys.executable, "-m", "dasec", *arguments], stderr=subprocess.DEVNULL) as daemon:
        wait_until(lambda: policies_of(pids_of(vm)) == {SCHED_EXT})
        assert state() == "enabled"
        yield daemon
    wait_for("disabled")


@pytest.mark.parametrize("kill", [False, True], ids=["is told to stop", "is killed"])
def test_children_are_followed_and_put_back_when_the_daemon(
    kill: bool, vms: dict[str, Vm], tmp_path: Path
) -> None:
    vms["family"] = vm = Vm("family")
    vm.run(FAMILY)
    config = configuration(tmp_path, SETTINGS, f'cgroup = "/scx.slice/{vm.path.name}"')
    with daemon_that_has(vm, tmp_path, "run", "--config", str(config)) as daemon:
        time.sleep(1)
        if kill:
            daemon.kill()
        else:
            daemon.terminate()
    wait_until(lambda: policies_of(pids_of(vm)) == {SCHED_OTHER})
    time.sleep(1)
    assert policies_of(pids_of(vm)) == {SCHED_OTHER}


def test_if_the_keeper_is_killed_too_restore_puts_every_policy_back(
    vms: dict[str, Vm], tmp_path: Path
) -> None:
    vms["family"] = vm = Vm("family")
    vm.run(FAMILY)
    config = configuration(tmp_path, SETTINGS, f'cgroup = "/scx.slice/{vm.path.name}"')
    with daemon_that_has(vm, tmp_path, "run", "--config", str(config)) as daemon:
        for pid in (*children(daemon.pid), daemon.pid):
            os.kill(pid, 9)
    assert SCHED_EXT in policies_of(pids_of(vm))
    assert dasec("restore", "--directory", tmp_path / "state").status == ExitStatus.DONE
    assert policies_of(pids_of(vm)) == {SCHED_OTHER}


def test_the_command_takes_the_workloads_of_a_configuration(vms: dict[str, Vm], tmp_path: Path) -> None:
    vms["ours"] = vm = Vm("ours")
    vm.run(IDLER)
    config = configuration(tmp_path, "", f'cgroup = "/scx.slice/{vm.path.name}"')
    with daemon_that_has(vm, tmp_path, "scx", "--partial", str(config)) as command:
        command.terminate()
        assert command.wait() == ExitStatus.DONE
    assert policies_of(pids_of(vm)) == {SCHED_OTHER}


def test_a_thread_of_that_policy_is_an_ordinary_one_for_the_whole_host(vms: dict[str, Vm]) -> None:
    """Somebody may have given it before we came: it is not ours to put back."""
    vms["theirs"] = vm = Vm("theirs")
    vm.run(HOG)
    schedattr.change_policy(vm.programs[0].pid, SCHED_EXT, 0)
    with Scheduler(options(2)) as scheduler:
        time.sleep(0.5)
        used = {one.cgroup: one.used_ns for one in scheduler.vms()}
        assert used[vm.path.stat().st_ino] > 0
    wait_for("disabled")
    assert policies_of(pids_of(vm)) == {SCHED_EXT}
