"""Child processes of one thread that sleep or spin on a core of the test's choice."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from dasec.linux import procfs
from guests.waiting import wait_for

SLEEP = "import signal\nwhile True: signal.pause()"
SPIN = "import os\nos.write({report}, b'r')\nwhile True: pass"
ASLEEP_S = 0.1


@contextmanager
def kept_off(core: int) -> Iterator[None]:
    """This thread keeps off a core: whoever looks from it finds there nobody running but itself."""
    mine = os.sched_getaffinity(0)
    if mine == {core}:
        pytest.skip("needs two CPUs: one to look from")
    os.sched_setaffinity(0, mine - {core})
    try:
        yield
    finally:
        os.sched_setaffinity(0, mine)


class Children:
    """Started one by one, ended all together."""

    def __init__(self) -> None:
        self._running: dict[int, subprocess.Popen[bytes]] = {}

    def spinner(self, core: int) -> int:
        """One that never sleeps any more: its program is loaded, and it is on its core."""
        reports, report = os.pipe()
        try:
            pid = self._start(SPIN.format(report=report), core, report)
        finally:
            os.close(report)
        with open(reports, "rb") as file:
            assert file.read(1), "it ended before its program was loaded"
        return pid

    def sleeper(self, core: int) -> int:
        """One that has gone to sleep."""
        pid = self._start("import signal\nsignal.signal(signal.SIGUSR1, lambda *_: None)\n" + SLEEP, core)
        self.wait_until_asleep(pid)
        return pid

    def wait_until_asleep(self, pid: int) -> None:
        """Until it has slept for a tenth of a second without running."""
        seen = [-1]

        def slept() -> bool:
            seen.append(self.dispatches(pid))
            return procfs.read_stat(pid, pid).state == "S" and seen[-1] == seen[-2]

        wait_for(slept, every_s=ASLEEP_S)

    @staticmethod
    def dispatches(pid: int) -> int:
        """How often it was given a core."""
        return procfs.parse_schedstat(procfs.read_bytes(f"/proc/{pid}/task/{pid}/schedstat"))[2]

    @staticmethod
    def start_ticks(pid: int) -> int:
        """When it started."""
        return procfs.read_stat(pid, pid).start_ticks

    def end(self, pid: int) -> None:
        """Kill it and wait until it is gone."""
        child = self._running.pop(pid)
        child.kill()
        child.wait()

    def close(self) -> None:
        """End all."""
        for pid in tuple(self._running):
            self.end(pid)

    def _start(self, program: str, core: int, *descriptors: int) -> int:
        child = subprocess.Popen([sys.executable, "-S", "-c", program], pass_fds=descriptors)
        self._running[child.pid] = child
        os.sched_setaffinity(child.pid, {core})
        return child.pid
