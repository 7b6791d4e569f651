"""Short-lived processes of our own to try things on: never somebody else's thread."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from ..linux import affinity

_SLEEP = "import sys; sys.stdin.read()"
_SPIN = "import os, select, sys\nwhile not select.select([0], [], [], 0)[0]:\n    sum(range(20000))"


@contextmanager
def sleeper() -> Iterator[int]:
    """A process that sleeps until the end of the block, or until we are gone."""
    with _child(_SLEEP, None) as pid:
        yield pid


@contextmanager
def spinner(cpu: int) -> Iterator[int]:
    """A process that spins on one CPU until the end of the block, or until we are gone."""
    with _child(_SPIN, cpu) as pid:
        yield pid


@contextmanager
def _child(program: str, cpu: int | None) -> Iterator[int]:
    command = [sys.executable, "-I", "-S", "-c", program]
    child = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, cwd="/", env=_environment()
    )
    try:
        if cpu is not None:
            affinity.put(child.pid, (cpu,))
        yield child.pid
    finally:
        child.kill()
        child.communicate()


def _environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name in ("PATH", "LD_LIBRARY_PATH")}
