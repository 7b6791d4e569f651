"""All that may come over a host's threads at once, while our scheduler has them: fork storms, random masks,
weights, groups that come and go, CPUs too.

    python -m tests.sched_ext.stress SECONDS

In a guest (tests/vm/scx_stress.py boots one), since it takes CPUs away. Says at the end what it did, or what
went wrong, with exit status 1.
"""

from __future__ import annotations

import os
import random
import re
import select
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

from dasec.bpf.scx import CGROUPS
from dasec.linux.sched_ext import state

from .machine import LOADS, SLICE, Vm, wait_for

CPUS = Path("/sys/devices/system/cpu")
MOST_STRESSORS = 4
HOTPLUG_EVERY_S = 2.0

LOST = re.compile(r"BUG:|WARNING:|Oops|soft lockup|rcu_\w+ (detected|self-detected) stall")
NOT_OURS = "kernel/sched/deadline.c"
"""6.12 warns there of a CPU that goes also where no sched_ext scheduler is loaded."""

PATIENCE_S = 60


@dataclass
class Done:
    """How much of each there was."""

    groups: int = 0
    masks: int = 0
    weights: int = 0
    hotplugs: int = 0
    said: list[str] = field(default_factory=list)


def stress(seconds: float, chance: random.Random, *, hotplug: bool = True) -> Done:
    """So long. Raises AssertionError if the scheduler is put out, or if the kernel complains."""
    (CGROUPS / "cgroup.subtree_control").write_text("+cpu")
    SLICE.mkdir(exist_ok=True)
    (SLICE / "cgroup.subtree_control").write_text("+cpu")
    command = subprocess.Popen(
        [sys.executable, "-P", "-m", "dasec", "scx"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    wait_for("enabled", PATIENCE_S)
    done, vms = Done(), [Vm("one"), Vm("two", 300)]
    storms = [_storm(vm, seconds) for vm in vms]
    try:
        _until(time.monotonic() + seconds, chance, vms, command, done, hotplug=hotplug)
    finally:
        for storm in storms:
            os.killpg(storm.pid, signal.SIGKILL)
            storm.wait()
        _all_online()
    wait_for("enabled", PATIENCE_S)
    assert command.poll() is None, done.said
    command.terminate()
    assert command.wait(PATIENCE_S) == 0
    wait_for("disabled")
    for vm in vms:
        vm.end()
    assert not (said := complaints()), said
    return done


def _storm(vm: Vm, seconds: float) -> subprocess.Popen[bytes]:
    """stress-ng in this VM: forks, masks that it changes itself, pipes, timers, work."""
    program = shutil.which("stress-ng")
    assert program is not None, "apt-get install stress-ng"
    number = str(max(1, min((os.cpu_count() or 1) // 4, MOST_STRESSORS)))
    kinds = ("affinity", "cpu", "fork", "switch", "pipe", "timerfd", "futex")
    each = [part for kind in kinds for part in (f"--{kind}", number)]
    command = [program, "--quiet", "--temp-path", "/tmp", "--timeout", str(int(seconds) + PATIENCE_S), *each]

    def enter() -> None:
        (vm.path / "cgroup.procs").write_text(str(os.getpid()))
        os.setsid()

    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, preexec_fn=enter)


def _until(
    ends: float,
    chance: random.Random,
    vms: list[Vm],
    command: subprocess.Popen[str],
    done: Done,
    *,
    hotplug: bool,
) -> None:
    assert command.stdout is not None
    next_hotplug = time.monotonic() + HOTPLUG_EVERY_S
    loads = LOADS.read_text()
    while time.monotonic() < ends:
        _come_and_go(chance, done)
        _move_masks(chance, vms, done)
        chance.choice(vms).weigh(chance.randint(1, 1000))
        done.weights += 1
        if hotplug and time.monotonic() > next_hotplug:
            _hotplug(chance, done)
            next_hotplug = time.monotonic() + HOTPLUG_EVERY_S
        while select.select([command.stdout], [], [], 0.05)[0]:
            line = command.stdout.readline()
            assert line, f"dasec scx ended with {command.wait()}: {done.said[-3:]}"
            done.said.append(line.strip())
        assert (state(), LOADS.read_text()) == ("enabled", loads)


def _come_and_go(chance: random.Random, done: Done) -> None:
    """A VM that lives for a moment, with a group of its own below it."""
    group = SLICE / f"short-{done.groups}.scope"
    inner = group / "vcpu0"
    inner.mkdir(parents=True)
    enter = f"echo 0 > {chance.choice((group, inner))}/cgroup.procs && exec sleep 0.01"
    subprocess.run(["/bin/sh", "-c", enter], check=False)
    for path in (inner, group):
        ends = time.monotonic() + PATIENCE_S
        while path.exists() and time.monotonic() < ends:
            try:
                path.rmdir()
            except OSError:
                time.sleep(0.01)
    done.groups += 1


def _move_masks(chance: random.Random, vms: list[Vm], done: Done) -> None:
    online = sorted(os.sched_getaffinity(0))
    for vm in vms:
        pids = (vm.path / "cgroup.procs").read_text().split()
        for pid in chance.sample(pids, min(8, len(pids))):
            mask = set(chance.sample(online, chance.randint(1, len(online))))
            try:
                os.sched_setaffinity(int(pid), mask)
                done.masks += 1
            except OSError:
                continue


def _hotplug(chance: random.Random, done: Done) -> None:
    files = [path for path in CPUS.glob("cpu[0-9]*/online") if path.parent.name != "cpu0"]
    file = chance.choice(files)
    file.write_text("0" if file.read_text().strip() == "1" else "1")
    done.hotplugs += 1


def _all_online() -> None:
    for file in CPUS.glob("cpu[0-9]*/online"):
        if file.read_text().strip() == "0":
            file.write_text("1")


def complaints() -> list[str]:
    """Of the kernel, since it began."""
    said = subprocess.run(["dmesg"], capture_output=True, text=True, check=True).stdout.splitlines()
    return [line for line in said if LOST.search(line) and NOT_OURS not in line]


def main() -> None:
    """Run, and say what was done."""
    seconds, seed = float(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1
    done = stress(seconds, random.Random(seed))
    print(
        f"{seconds:g} s on {os.cpu_count()} CPUs, seed {seed}: {done.groups} groups, {done.masks} masks,"
        f" {done.weights} weights, {done.hotplugs} times a CPU went or came"
    )


if __name__ == "__main__":
    main()
