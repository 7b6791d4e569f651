"""Short-lived processes of our own to try things on: never somebody else's thread."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import IO, NamedTuple

from ...linux import affinity
from ...linux.uninterrupted import uninterrupted

_READY = "import os, select, signal, sys\nos.write(1, b'.')\n"
_UNTIL = "os.read(0, 1)\nsignal.setitimer(signal.ITIMER_REAL, {})\n"
_SLEEP = "sys.stdin.read()"
_SPIN = "while not select.select([0], [], [], 0)[0]:\n    sum(range(20000))"
_NAP = "while not select.select([0], [], [], 0.0001)[0]:\n    pass"


class Runner(NamedTuple):
    """A process that waits for its word, and then computes."""

    pid: int
    word: IO[bytes]

    def begin(self) -> None:
        """Now."""
        self.word.write(b".")
        self.word.flush()


@contextmanager
def sleeper() -> Iterator[int]:
    """A process that sleeps until the end of the block, or until we are gone."""
    with _child(_SLEEP, None) as child:
        yield child.pid


@contextmanager
def spinner(cpu: int, seconds: float) -> Iterator[Runner]:
    """Once it has begun, it spins on one CPU until the end of the block, or until we are gone. After so many
    seconds it ends by itself: whom it keeps from the CPU may be us."""
    with _runner(_SPIN, cpu, seconds) as runner:
        yield runner


@contextmanager
def napper(cpu: int, seconds: float) -> Iterator[Runner]:
    """Once it has begun, it wakes up on one CPU some thousand times a second, as long."""
    with _runner(_NAP, cpu, seconds) as runner:
        yield runner


@contextmanager
def _runner(program: str, cpu: int, seconds: float) -> Iterator[Runner]:
    with _child(_UNTIL.format(seconds) + program, cpu) as child:
        assert child.stdin is not None
        yield Runner(child.pid, child.stdin)


@contextmanager
def _child(program: str, cpu: int | None) -> Iterator[subprocess.Popen[bytes]]:
    """As soon as it does what it shall: an interpreter that starts computes, too."""
    command = [sys.executable, "-I", "-S", "-c", _READY + program]
    with ExitStack() as ours:
        with uninterrupted():
            child = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd="/", env=_environment()
            )
            ours.callback(_end, child)
        assert child.stdout is not None
        child.stdout.read(1)
        if cpu is not None:
            affinity.put(child.pid, (cpu,))
        yield child


def _end(child: subprocess.Popen[bytes]) -> None:
    child.kill()
    child.communicate()


def _environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name in ("PATH", "LD_LIBRARY_PATH")}
