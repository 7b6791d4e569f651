"""Short-lived processes of our own to try things on: never somebody else's thread."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from ..linux import affinity

_READY = "import os, select, signal, sys\nos.write(1, b'.')\n"
_UNTIL = "signal.setitimer(signal.ITIMER_REAL, {})\n"
_SLEEP = "sys.stdin.read()"
_SPIN = "while not select.select([0], [], [], 0)[0]:\n    sum(range(20000))"
_NAP = "while not select.select([0], [], [], 0.0001)[0]:\n    pass"


@contextmanager
def sleeper() -> Iterator[int]:
    """A process that sleeps until the end of the block, or until we are gone."""
    with _child(_SLEEP, None) as pid:
        yield pid


@contextmanager
def spinner(cpu: int, seconds: float) -> Iterator[int]:
    """A process that spins on one CPU until the end of the block, or until we are gone. After so many seconds
    it ends by itself: whom it keeps from the CPU may be us."""
    with _child(_UNTIL.format(seconds) + _SPIN, cpu) as pid:
        yield pid


@contextmanager
def napper(cpu: int, seconds: float) -> Iterator[int]:
    """A process that wakes up on one CPU some thousand times a second, as long."""
    with _child(_UNTIL.format(seconds) + _NAP, cpu) as pid:
        yield pid


@contextmanager
def _child(program: str, cpu: int | None) -> Iterator[int]:
    """As soon as it does what it shall: an interpreter that starts computes, too."""
    command = [sys.executable, "-I", "-S", "-c", _READY + program]
    child = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd="/", env=_environment()
    )
    assert child.stdout is not None
    try:
        child.stdout.read(1)
        if cpu is not None:
            affinity.put(child.pid, (cpu,))
        yield child.pid
    finally:
        child.kill()
        child.communicate()


def _environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name in ("PATH", "LD_LIBRARY_PATH")}
