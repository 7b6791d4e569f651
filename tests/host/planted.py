"""Processes that wake each other a known number of times; each is one thread.

A planter waits until its target sleeps before it writes, so each write is one wake-up, no more and no less.
State S proves no sleep: a thread shows it from before it looks for the last time whether it must sleep
at all, and a write that comes in between wakes nobody.
"""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
import time

from dasec.linux import procfs
from dasec.model import VcpuId


def asleep(pid: int) -> bool:
    """Whether it has left its core, in a system call, after all that has woken it until now.

    For `syscall` the kernel waits until whoever shows a sleeping state is off its run queue
    (task_current_syscall). A thread on its way out of sleep, TASK_WAKING, passes there, but not as S.
    """
    with open(f"/proc/{pid}/stat", "rb") as file:
        if file.read().rpartition(b") ")[2][:1] != b"S":
            return False
    with open(f"/proc/{pid}/syscall", "rb") as file:
        return file.read(1).isdigit()


PRELUDE = (
    "import os, sys, time\n"
    + inspect.getsource(asleep)
    + """
def plant(pid, fd, times):
    for _ in range(times):
        while not asleep(pid):
            time.sleep(0.0005)
        os.write(fd, b"x" * 8)
ready, go = int(sys.argv[1]), int(sys.argv[2])
os.write(ready, b"r")
"""
)
TARGET = "while True: os.read(go, 8)"
PLANTER = (
    "os.read(go, 1)\nfor job in sys.argv[3:]:\n    plant(*map(int, job.split(',')))\n"
    "os.write(ready, b'd')\nos.read(go, 1)"
)
NAPPER = (
    "os.read(go, 1)\nfor _ in range(int(sys.argv[3])): time.sleep(0.002)\n"
    "os.write(ready, b'd')\nos.read(go, 1)"
)
CALLED = "os.read(go, 1)\nwhile True: pass"
RESTLESS = "while True: time.sleep(0.00005)"
SPINNER = "while True: pass"


class Actor:
    """One process of one thread, with a pipe to start it and one on which it reports."""

    def __init__(
        self, program: str, *arguments: str, core: int | None = None, inherit: tuple[int, ...] = ()
    ) -> None:
        self._reports, ready = os.pipe()
        self.go, self.starter = os.pipe()
        command = [sys.executable, "-S", "-c", PRELUDE + program, str(ready), str(self.go), *arguments]
        self._process = subprocess.Popen(command, pass_fds=(ready, self.go, *inherit))
        os.close(ready)
        self.pid = self._process.pid
        if core is not None:
            os.sched_setaffinity(self.pid, {core})
        self.wait()
        self.id = VcpuId(self.pid, self.pid, procfs.read_stat(self.pid, self.pid).start_ticks)

    def start(self) -> None:
        """Say go."""
        os.write(self.starter, b"g")

    def wait(self) -> None:
        """Until it reports: first that it is ready, then that it has done its work."""
        assert os.read(self._reports, 1), "the process ended before its time"

    def wait_until_asleep(self) -> None:
        """Until it sleeps in its read."""
        while not asleep(self.pid):
            time.sleep(0.0005)

    def end(self) -> None:
        """Kill it."""
        self._process.kill()
        self._process.wait()
        for descriptor in (self._reports, self.go, self.starter):
            os.close(descriptor)


def planter(*jobs: tuple[Actor, int], core: int | None = None) -> Actor:
    """Wakes each target in turn so many times, once it is told to go."""
    arguments = [f"{target.pid},{target.starter},{times}" for target, times in jobs]
    return Actor(PLANTER, *arguments, core=core, inherit=tuple(target.starter for target, _ in jobs))


def target(actors: list[Actor], core: int | None = None) -> Actor:
    actors.append(Actor(TARGET, core=core))
    actors[-1].wait_until_asleep()
    return actors[-1]


def run(actors: list[Actor], actor: Actor) -> None:
    actors.append(actor)
    actor.wait_until_asleep()
    actor.start()
    actor.wait()
