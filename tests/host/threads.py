"""A process that starts threads when a test asks for them, each asleep for good."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from dasec.linux import procfs
from dasec.model import VcpuId
from tests.contract.stage import not_niced

PROGRAM = """
import os, queue, sys, threading
def born(orders):
    print(threading.get_native_id(), flush=True)
    for order in iter(orders.get, None):
        exec(order)
print(threading.get_native_id(), flush=True)
made = []
for line in sys.stdin:
    word, _, rest = line.strip().partition(" ")
    if word == "thread":
        made.append(queue.Queue())
        threading.Thread(target=born, args=(made[-1],), daemon=True).start()
    else:
        made[int(word)].put(rest)
"""
"""`thread` starts one more; `N CODE` lets the Nth of them run a line of Python."""


class Threads:
    """The process: its main thread, and those that it has started, in order."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.main = self._met()

    def start(self) -> VcpuId:
        """One more."""
        self._say("thread")
        return self._met()

    def order(self, number: int, code: str) -> None:
        """The thread of this number does something."""
        self._say(f"{number} {code}")

    def _say(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{line}\n")
        self.process.stdin.flush()

    def _met(self) -> VcpuId:
        assert self.process.stdout is not None
        tid, pid = int(self.process.stdout.readline()), self.process.pid
        return VcpuId(pid, tid, procfs.read_stat(pid, tid).start_ticks)


@contextmanager
def threads() -> Iterator[Threads]:
    """It ends with the test."""
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-S", "-c", PROGRAM], stdin=pipe, stdout=pipe, text=True) as child:
        try:
            not_niced(child.pid)
            yield Threads(child)
        finally:
            child.kill()
