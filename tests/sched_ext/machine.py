"""VMs of Python programs on a kernel with sched_ext, and what the kernel says of its scheduler."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest

from dasec.bpf.scx import CGROUPS
from dasec.hosts.sched_ext import rcu
from dasec.linux import procfs, sched_ext
from dasec.linux.errors import ThreadGone
from dasec.linux.sched_ext import SYSFS
from dasec.model import VcpuId

NEEDS_SCHED_EXT = [
    pytest.mark.host,
    pytest.mark.skipif(
        os.environ.get("DASEC_GUEST") != "1" or not SYSFS.is_dir(),
        reason="needs sched_ext, in a guest of its own; tests/vm boots one",
    ),
]

LOADS = SYSFS / "enable_seq"
"""How often any sched_ext scheduler was loaded since the kernel began."""

SLICE = CGROUPS / "scx.slice"
SHARES_S = 3.0
SOON_S = 10
TRIES = 6
HOG = "while True: pass"
PING_PONG = """
import threading
a, b = os.pipe(), os.pipe()
def echo():
    while os.read(a[0], 1): os.write(b[1], b"x")
threading.Thread(target=echo, daemon=True).start()
while True:
    os.write(a[1], b"x"); os.read(b[0], 1)
"""
TOGETHER = """
import os
begin, held = os.pipe()
any(os.fork() == 0 for _ in range({others})) # a child makes no more
os.close(held)
os.read(begin, 1)
"""

T = TypeVar("T")


def wait_for(wanted: str, patience_s: float = SOON_S) -> None:
    """Until the kernel's state is that; fails after a while."""
    ends = time.monotonic() + patience_s
    while (state := sched_ext.state()) != wanted:
        assert time.monotonic() < ends, f"{state} after {patience_s} s, not {wanted}"
        time.sleep(0.05)


def priorities_of_rcu() -> set[int]:
    """Real-time priorities; 0 is an ordinary thread."""
    found = set()
    for pid in procfs.process_ids():
        with contextlib.suppress(ThreadGone):  # others end meanwhile
            if procfs.read_stat(pid, pid).comm in rcu.NAMES:
                found.add(os.sched_getparam(pid).sched_priority)
    return found


def identity(pid: int) -> VcpuId:
    """The main thread of a process."""
    return VcpuId(pid, pid, procfs.read_stat(pid, pid).start_ticks)


def computed_s(pid: int) -> float:
    """CPU time of its main thread."""
    return int(procfs.read_bytes(f"/proc/{pid}/schedstat").split()[0]) / 1e9


def made(group: Path, weight: int = 100) -> Path:
    """A group of this weight for others below it, which share by weights of their own."""
    group.mkdir()
    (group / "cpu.weight").write_text(str(weight))
    (group / "cgroup.subtree_control").write_text("+cpu")
    return group


class Vm:
    """A cgroup with Python programs in it, below one that the tests have made."""

    def __init__(self, name: str, weight: int = 100, above: Path = SLICE) -> None:
        self.path = above / f"{name}.scope"
        self.path.mkdir()
        self.weigh(weight)
        self.programs: list[subprocess.Popen[bytes]] = []

    def weigh(self, weight: int) -> None:
        (self.path / "cpu.weight").write_text(str(weight))

    def run(self, program: str, cpus: set[int] | None = None, times: int = 1) -> None:
        """A Python program, in so many processes that begin together, from when each has said that it has: to
        start one takes a second here, and more beside others."""

        def enter() -> None:
            (self.path / "cgroup.procs").write_text(str(os.getpid()))

        begin = TOGETHER.format(others=times - 1)
        begin += f"os.sched_setaffinity(0, {cpus or {0, 1}})\nprint(flush=True)\n"
        command = [sys.executable, "-I", "-S", "-c", begin + program]
        self.programs.append(subprocess.Popen(command, stdout=subprocess.PIPE, preexec_fn=enter))
        assert (said := self.programs[-1].stdout) is not None
        assert [said.readline() for _ in range(times)] == [b"\n"] * times

    def used_s(self) -> float:
        said = (self.path / "cpu.stat").read_text().split()
        return int(said[said.index("usage_usec") + 1]) / 1e6

    def end(self) -> None:
        """Its programs, wherever they are by now, and their children, which hold the same pipes."""
        (self.path / "cgroup.kill").write_text("1")
        for program in self.programs:
            program.kill()
        for program in self.programs:
            program.communicate()
        ends = time.monotonic() + SOON_S
        while self.path.exists() and time.monotonic() < ends:
            with contextlib.suppress(OSError):
                self.path.rmdir()


def in_the_end(measure: Callable[[], T], fits: Callable[[T], bool]) -> None:
    """At one of some looks. A machine that is emulated loses ticks while its host is busy, and with them the
    ends of slices; bursts grow by what it loses."""
    seen = []
    for _ in range(TRIES):
        seen.append(measure())
        if fits(seen[-1]):
            return
    raise AssertionError(seen)


def used_meanwhile(vms: dict[str, Vm]) -> dict[str, float]:
    """The CPU time of each VM in some seconds."""
    before = {name: vm.used_s() for name, vm in vms.items()}
    time.sleep(SHARES_S)
    return {name: vm.used_s() - before[name] for name, vm in vms.items()}
