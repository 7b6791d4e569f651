"""Our sched_ext scheduler in a kernel that has sched_ext: what it shares out, and how it ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from dasec.bpf.libbpf import BpfUnavailable
from dasec.bpf.scx import Scheduler, no_vms, options, refuse_what_it_cannot_keep
from dasec.errors import ExitStatus
from dasec.hosts.sched_ext.rcu import FIRST
from dasec.knobs.realtime import ORDINARY
from dasec.linux import schedattr
from dasec.linux.sched_ext import SYSFS, state
from guests.waiting import wait_for as wait_until

from .machine import (
    HOG,
    LOADS,
    NEEDS_SCHED_EXT,
    PING_PONG,
    SHARES_S,
    SLICE,
    SOON_S,
    Vm,
    computed_s,
    in_the_end,
    priorities_of_rcu,
    used_meanwhile,
    wait_for,
)

pytestmark = NEEDS_SCHED_EXT

CPU_1 = Path("/sys/devices/system/cpu/cpu1/online")


def test_it_schedules_while_it_is_held_and_no_longer(scheduler: Scheduler) -> None:
    assert state() == "enabled"
    assert (SYSFS / "root/ops").read_text().strip() == "dasec"
    assert scheduler.ended() is None
    scheduler.close()
    wait_for("disabled")


def test_a_probe_tries_it_and_lets_it_schedule_nobody() -> None:
    before = LOADS.read_text()
    told = subprocess.run(
        [sys.executable, "-P", "-m", "dasec", "probe", "--json"], capture_output=True, text=True, check=True
    )
    said = json.loads(told.stdout)
    assert said["own_scheduler"], said["own_scheduler_note"]
    assert (state(), LOADS.read_text()) == ("disabled", before)


def test_a_deadline_thread_keeps_its_policy_and_has_its_runtime(
    scheduler: Scheduler, vms: dict[str, Vm]
) -> None:
    vms["busy"] = Vm("busy")
    vms["busy"].run(HOG, times=4)
    quarter = ("--sched-runtime", "5000000", "--sched-deadline", "20000000", "--sched-period", "20000000")
    with subprocess.Popen(["chrt", "--deadline", *quarter, "0", sys.executable, "-S", "-c", HOG]) as child:
        try:
            wait_until(lambda: schedattr.policy_of(child.pid) == schedattr.SCHED_DEADLINE)
            time.sleep(1)
            before_s, began_s = computed_s(child.pid), time.monotonic()
            time.sleep(SHARES_S)
            used_s = computed_s(child.pid) - before_s
            assert used_s / (time.monotonic() - began_s) == pytest.approx(0.25, abs=0.08)
            assert schedattr.policy_of(child.pid) == schedattr.SCHED_DEADLINE
        finally:
            child.kill()


def test_vms_share_a_cpu_by_their_weights_however_many_threads_they_have(
    scheduler: Scheduler, vms: dict[str, Vm]
) -> None:
    vms["light"], vms["heavy"] = Vm("light", 100), Vm("heavy", 300)
    vms["light"].run(HOG, {0}, times=3)
    vms["heavy"].run(HOG, {0})
    time.sleep(1)
    used = used_meanwhile(vms)
    assert used["heavy"] / used["light"] == pytest.approx(3, rel=0.15)


def test_one_thread_of_a_heavy_vm_gets_its_share_beside_ten_of_a_light_one(
    scheduler: Scheduler, vms: dict[str, Vm]
) -> None:
    vms["heavy"], vms["light"] = Vm("heavy", 100), Vm("light", 10)
    vms["light"].run(HOG, {0}, times=10)
    vms["heavy"].run(HOG, {0})
    time.sleep(1)
    used = used_meanwhile(vms)
    assert used["heavy"] / sum(used.values()) == pytest.approx(10 / 11, abs=0.04)


def test_two_threads_get_half_of_two_cpus_beside_sixty_of_another_vm(
    scheduler: Scheduler, vms: dict[str, Vm]
) -> None:
    vms["few"], vms["many"] = Vm("few"), Vm("many")
    vms["many"].run(HOG, times=60)
    vms["few"].run(HOG, times=2)
    time.sleep(1)
    used = used_meanwhile(vms)
    assert used["few"] / sum(used.values()) == pytest.approx(0.5, abs=0.06)


def test_a_weight_that_is_changed_counts_at_once(scheduler: Scheduler, vms: dict[str, Vm]) -> None:
    vms["one"], vms["other"] = Vm("one", 300), Vm("other", 300)
    for vm in vms.values():
        vm.run(HOG, {1})
    vms["one"].weigh(100)
    time.sleep(1)
    used = used_meanwhile(vms)
    assert used["other"] / used["one"] == pytest.approx(3, rel=0.15)


def test_a_pair_gets_its_share_beside_hogs_of_another_vm(scheduler: Scheduler, vms: dict[str, Vm]) -> None:
    vms["pair"], vms["hogs"] = Vm("pair"), Vm("hogs")
    vms["pair"].run(PING_PONG, {0})
    vms["hogs"].run(HOG, {0}, times=4)
    time.sleep(1)
    used = used_meanwhile(vms)
    assert used["pair"] / sum(used.values()) == pytest.approx(0.5, abs=0.08)


FAKER = """
import threading
def burn():
    while True: pass
def fake(one, other):
    while os.read(one, 1):
        for _ in range(2000): pass
        os.write(other, b"x")
pipes = [os.pipe() for _ in range(6)]
for number in range(6):
    threading.Thread(target=fake, args=(pipes[number][0], pipes[(number + 1) % 6][1])).start()
for _ in range(3): os.write(pipes[0][1], b"x")
"""


def test_a_vm_that_fakes_importance_before_many_hogs_of_its_own_gets_its_share(
    scheduler: Scheduler, vms: dict[str, Vm]
) -> None:
    vms["faker"], vms["batch"] = Vm("faker"), Vm("batch")
    vms["batch"].run(HOG, {0})
    vms["faker"].run(HOG, {0}, times=10)
    vms["faker"].run(FAKER, {0}, times=3)
    time.sleep(1)
    used = used_meanwhile(vms)
    assert used["batch"] / sum(used.values()) == pytest.approx(0.5, abs=0.08)


SLEEPER = """
import signal
signal.signal(signal.SIGUSR1, lambda *_: None)
signal.pause()
while True: pass
"""


def test_vms_that_slept_and_wake_together_have_saved_up_no_more_than_each_alone(
    scheduler: Scheduler, vms: dict[str, Vm]
) -> None:
    """They slept through what was due to them, so nothing of it is left; 270 ms each would be the most."""
    for name in ("one", "other"):
        vms[name] = Vm(name)
        vms[name].run(SLEEPER, {0})
    vms["awake"] = Vm("awake")
    vms["awake"].run(HOG, {0})
    time.sleep(4)
    for name in ("one", "other"):
        vms[name].programs[0].send_signal(signal.SIGUSR1)
    used = used_meanwhile(vms)
    assert used["awake"] / sum(used.values()) > 0.2


def test_slots_of_vms_that_are_gone_are_used_again(scheduler: Scheduler, vms: dict[str, Vm]) -> None:
    before = len(scheduler.vms())
    for number in range(40):
        vm = Vm(f"short-{number}")
        enter = f"echo 0 > {vm.path}/cgroup.procs && exec sleep 0.01"
        subprocess.run(["/bin/sh", "-c", enter], check=True)
        vm.end()
    ends = time.monotonic() + SOON_S
    while len(scheduler.vms()) != before:  # the kernel frees a group later than its directory
        assert time.monotonic() < ends
        time.sleep(0.05)
    vms["last"] = Vm("last")
    assert vms["last"].path.stat().st_ino in {vm.cgroup for vm in scheduler.vms()}


def test_masks_that_change_all_the_time_put_it_not_out(scheduler: Scheduler, vms: dict[str, Vm]) -> None:
    vms["restless"] = Vm("restless")
    for _ in range(4):
        vms["restless"].run(HOG)
    ends, masks = time.monotonic() + 3, ({0}, {1}, {0, 1})
    while time.monotonic() < ends:
        for number, program in enumerate(vms["restless"].programs):
            os.sched_setaffinity(program.pid, masks[(number + int(time.monotonic() * 100)) % 3])
    assert scheduler.ended() is None
    assert used_meanwhile(vms)["restless"] > SHARES_S


def test_a_thread_that_moves_to_another_vm_is_charged_there(scheduler: Scheduler, vms: dict[str, Vm]) -> None:
    vms["from"], vms["to"] = Vm("from"), Vm("to")
    vms["from"].run(HOG)
    (vms["to"].path / "cgroup.procs").write_text(str(vms["from"].programs[0].pid))
    time.sleep(1)
    used = {vm.cgroup: vm.used_ns for vm in scheduler.vms()}
    assert used[vms["to"].path.stat().st_ino] > 0.5e9


def test_a_second_one_is_refused_by_the_name_of_the_first(scheduler: Scheduler) -> None:
    with pytest.raises(BpfUnavailable, match="the sched_ext scheduler dasec is enabled already"):
        Scheduler(options(2))


def test_a_cpu_limit_refuses_it_in_one_line(vms: dict[str, Vm]) -> None:
    vms["limited"] = Vm("limited")
    (vms["limited"].path / "cpu.max").write_text("50000 100000")
    with pytest.raises(BpfUnavailable, match=r"limited.scope has a CPU limit \(50000 100000\)"):
        refuse_what_it_cannot_keep()
    assert state() == "disabled"


class Command:
    """`dasec scx` as a user starts it."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-m", "dasec", "scx"],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert self.process.stdout is not None
        self.first = self.process.stdout.readline()

    def rest(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.read()


@pytest.fixture
def command() -> Iterator[Command]:
    made = Command()
    yield made
    made.process.kill()
    made.process.wait()
    wait_for("disabled")


def test_the_command_says_what_it_does_and_ends_with_the_shares(command: Command) -> None:
    assert command.first == "dasec scx: schedules since now; VMs are the cgroups at depth 2\n"
    assert state() == "enabled"
    assert priorities_of_rcu() == {FIRST}
    command.process.send_signal(signal.SIGTERM)
    lines = command.rest().splitlines()
    assert command.process.wait() == 0
    assert lines[0].split() == ["CPU,", "s", "of", "all", "critical", "weight", "cgroup"]
    assert lines[1].endswith("all others")
    assert lines[-1] == "dasec scx: the kernel's own scheduler is back"
    wait_for("disabled")
    assert priorities_of_rcu() == {ORDINARY}


def test_a_limit_that_is_set_meanwhile_ends_it_in_one_line(command: Command, vms: dict[str, Vm]) -> None:
    vms["limited"] = Vm("limited")
    (vms["limited"].path / "cpu.max").write_text("50000 100000")
    (said,) = command.rest().splitlines()
    assert said.endswith(
        "limited.scope has a CPU limit (50000 100000): the kernel's own scheduler is back, which keeps it"
    )
    assert command.process.wait() == ExitStatus.HOST
    wait_for("disabled")


def test_a_command_that_is_killed_leaves_the_kernels_own_scheduler(command: Command) -> None:
    assert state() == "enabled"
    command.process.kill()
    wait_for("disabled")
    wait_until(lambda: priorities_of_rcu() == {ORDINARY})


def test_what_the_kernel_puts_out_is_said_in_one_line(command: Command) -> None:
    assert state() == "enabled"
    Path("/proc/sysrq-trigger").write_text("S")
    said = command.rest()
    assert command.process.wait() == 1
    assert said.startswith("dasec: scx: the kernel put it out and schedules itself: ")
    assert "SysRq" in said or "sysrq" in said
    assert len(said.splitlines()) == 1


def test_a_cpu_that_goes_and_comes_finds_it_as_it_was(scheduler: Scheduler, vms: dict[str, Vm]) -> None:
    """And those that waited for that CPU alone are where they may run."""
    vms["there"], vms["anywhere"] = Vm("there"), Vm("anywhere")
    for _ in range(2):
        vms["there"].run(HOG, {1})
        vms["anywhere"].run(HOG)
    loads = LOADS.read_text()
    CPU_1.write_text("0")
    in_the_end(
        lambda: used_meanwhile(vms),
        lambda used: used["there"] / sum(used.values()) == pytest.approx(0.5, abs=0.08),
    )
    alone_s = sum(used_meanwhile(vms).values())
    CPU_1.write_text("1")
    assert sum(used_meanwhile(vms).values()) > 1.5 * alone_s
    assert scheduler.ended() is None
    assert LOADS.read_text() == loads


BORN = 12
BIRTHS = f"""
import resource, time
for _ in range({BORN}):
    if not os.fork():
        resource.setrlimit(resource.RLIMIT_CPU, (8, 8))
        while True: pass
    time.sleep(0.02)
print(flush=True)
while True: time.sleep(1)
"""


def test_those_who_are_born_while_a_cpu_goes_do_not_keep_the_host_to_themselves(
    scheduler: Scheduler, vms: dict[str, Vm]
) -> None:
    """Or the CPU would not go before they end."""
    vms["born"] = Vm("born")
    vms["born"].run(BIRTHS)
    CPU_1.write_text("0")
    CPU_1.write_text("1")
    stdout = vms["born"].programs[0].stdout
    assert stdout is not None
    assert stdout.readline() == b"\n"
    assert len((vms["born"].path / "cgroup.procs").read_text().split()) == 1 + BORN


def test_a_group_without_the_cpu_controller_shares_with_all_of_the_group_above_and_is_named(
    scheduler: Scheduler, vms: dict[str, Vm]
) -> None:
    vms["lacking"] = Vm("lacking")
    assert no_vms(2) is None
    (SLICE / "cgroup.subtree_control").write_text("-cpu")
    vms["lacking"].run(HOG)
    time.sleep(1)
    rest, above = scheduler.vms()
    assert no_vms(2) == (
        "scx.slice/lacking.scope, one of 1 such groups at depth 2, is no VM but shares as one with all"
        f" others of scx.slice: no cpu in {SLICE}/cgroup.subtree_control"
    )
    assert above.cgroup == SLICE.stat().st_ino
    assert above.used_ns > 0.5e9 > rest.used_ns


def test_threads_that_are_in_no_vm_share_as_one(scheduler: Scheduler) -> None:
    def burn() -> None:
        ends = time.thread_time() + 0.3
        while time.thread_time() < ends:
            pass

    threads = [threading.Thread(target=burn) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    rest = scheduler.vms()[0]
    assert (rest.cgroup, rest.weight) == (0, 100)
    assert rest.used_ns > 0.5e9
