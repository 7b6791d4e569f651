"""Processes that wake each other a known number of times; each is one thread.

A planter waits until its target sleeps before it writes, so each write is one wake-up, no more and no less.
"""

from __future__ import annotations

import os
import subprocess
import sys

from dasec.linux import procfs
from dasec.model import VcpuId

PRELUDE = """
import os, sys, time
def asleep(pid):
    with open(f"/proc/{pid}/stat", "rb") as file:
        return file.read().rpartition(b") ")[2][:1] == b"S"
def plant(pid, fd, times):
    for _ in range(times):
        while not asleep(pid):
            time.sleep(0.0005)
        os.write(fd, b"x" * 8)
        time.sleep(0.0005)
ready, go = int(sys.argv[1]), int(sys.argv[2])
os.write(ready, b"r")
"""
TARGET = "while True: os.read(go, 8)"
PLANTER = (
    "os.read(go, 1)\nfor job in sys.argv[3:]:\n    plant(*map(int, job.split(',')))\n"
    "os.write(ready, b'd')\nos.read(go, 1)"
)
NAPPER = (
    "os.read(go, 1)\nfor _ in range(int(sys.argv[3])): time.sleep(0.002)\n"
    "os.write(ready, b'd')\nos.read(go, 1)"
)
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
        while procfs.read_stat(self.pid, self.pid).state != "S":
            os.sched_yield()

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
