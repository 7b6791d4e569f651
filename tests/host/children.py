"""Child processes of one thread that sleep or spin on a core of the test's choice."""

from __future__ import annotations

import os
import subprocess
import sys
import time

from dasec.linux import procfs

SLEEP = "import signal\nwhile True: signal.pause()"
SPIN = "while True: pass"
PATIENCE_S = 30.0


class Children:
    """Started one by one, ended all together."""

    def __init__(self) -> None:
        self._running: dict[int, subprocess.Popen[bytes]] = {}

    def spinner(self, core: int) -> int:
        """One that never sleeps."""
        return self._start(SPIN, core)

    def sleeper(self, core: int) -> int:
        """One that has gone to sleep."""
        pid = self._start("import signal\nsignal.signal(signal.SIGUSR1, lambda *_: None)\n" + SLEEP, core)
        self.wait_until_asleep(pid)
        return pid

    def wait_until_asleep(self, pid: int) -> None:
        """Until it has slept for a tenth of a second without running."""
        deadline = time.monotonic() + PATIENCE_S
        before = -1
        while time.monotonic() < deadline:
            switches = self.dispatches(pid)
            if procfs.read_stat(pid, pid).state == "S" and switches == before:
                return
            before = switches
            time.sleep(0.1)
        raise TimeoutError(f"{pid} does not go to sleep")

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

    def _start(self, program: str, core: int) -> int:
        child = subprocess.Popen([sys.executable, "-S", "-c", program])
        self._running[child.pid] = child
        os.sched_setaffinity(child.pid, {core})
        return child.pid
