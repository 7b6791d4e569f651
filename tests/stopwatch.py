"""How long something took, without the time for which the machine had no core for it.

A promise of real time ("restored within a second") is judged with it: on a quiet machine it shows
what any clock shows; on a busy one it leaves out what those who keep and those who watch the promise
waited for a core (schedstat), and what the hypervisor took from this machine (/proc/stat).
"""

from __future__ import annotations

import os
import threading
import time

from dasec.linux import procfs
from dasec.linux.errors import ThreadGone

_STEAL = 8
"""The column of /proc/stat's first line: cpu, user, nice, system, idle, iowait, irq, softirq, steal."""


class Stopwatch:
    """Started when it is made, by the thread that watches; `pids` are the processes that must act."""

    def __init__(self, *pids: int) -> None:
        self._tasks = [f"/proc/{pid}/task/{pid}" for pid in pids]
        self._tasks.append(f"/proc/{os.getpid()}/task/{threading.get_native_id()}")
        self._waited_ns = {task: _waited_ns(task) for task in self._tasks}
        self._last_ns = dict(self._waited_ns)
        self._stolen_s = stolen_s()
        self._start_s = time.monotonic()

    def seconds(self) -> float:
        """Since the start. Look often: of a process that has ended, the last look counts."""
        took_s = time.monotonic() - self._start_s
        self._last_ns = {task: _waited_ns(task) or last for task, last in self._last_ns.items()}
        waited_ns = sum(self._last_ns.values()) - sum(self._waited_ns.values())
        return took_s - waited_ns / 1e9 - (stolen_s() - self._stolen_s)


def stolen_s() -> float:
    """How long the hypervisor has kept this machine's cores from running when they wanted to, together."""
    with open("/proc/stat", encoding="ascii") as file:
        return int(file.readline().split()[_STEAL]) / os.sysconf("SC_CLK_TCK")


def _waited_ns(task: str) -> int:
    """How long a thread has been ready without a core; 0 if it is gone."""
    try:
        return procfs.parse_schedstat(procfs.read_bytes(f"{task}/schedstat"))[1]
    except ThreadGone:
        return 0
