"""One process of an application: started in its place, told when to begin, waited for, ended."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from dasec.errors import ExitStatus, Refusal
from dasec.lab.kit.process import last_line

from .driver import Place, Role

POLL_S = 0.02
READY_PATIENCE_S = 60.0
"""For a program to come up beside others that compute."""

KILL_PATIENCE_S = 10.0

HOLD = 'read -r wait && sleep "$wait" && exec "$@"'
"""The program that it becomes has the same process id: a policy may be attached before it begins."""


def failure(name: str, why: str) -> Refusal:
    """The application failed."""
    return Refusal(ExitStatus.FAILED, f"{name}: {why}")


def held(command: Sequence[str]) -> tuple[str, ...]:
    """The command, but not before its standard input says how many seconds to wait."""
    return ("/bin/sh", "-c", HOLD, "held", *command)


def within(folder: Path, environment: Mapping[str, str], command: Sequence[str]) -> tuple[str, ...]:
    """The command in this folder, with these variables."""
    return ("env", "-C", str(folder), *(f"{name}={text}" for name, text in environment.items()), *command)


@dataclass(frozen=True, slots=True)
class Child:
    """A process that was started, and all that it starts."""

    name: str
    place: Place
    process: subprocess.Popen[bytes]
    log: Path

    @classmethod
    def start(
        cls,
        name: str,
        place: Place,
        command: Sequence[str],
        log: Path,
        role: Role = Role.WORKLOAD,
        serves: Sequence[int] = (),
    ) -> Child:
        return cls(name, place, place.start(command, log, role, serves), log)

    def pids(self) -> tuple[int, ...]:
        return self.place.pids(self.process)

    def tell(self, line: str) -> None:
        """One line on its standard input, which is closed. A process that has gone is found out later."""
        assert self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write(f"{line}\n".encode())
            self.process.stdin.close()

    def release(self, start_ns: int) -> None:
        """Lets a held command begin at this CLOCK_MONOTONIC time."""
        self.tell(f"{max(0.0, (start_ns - time.monotonic_ns()) / 1e9):.4f}")

    def ensure_alive(self) -> None:
        """Refusal, with its last words, if it has ended."""
        if self.process.poll() is not None:
            raise failure(
                self.name, f"ended early, exit status {self.process.returncode}: {last_line(self.log)}"
            )

    def wait_until(self, condition: Callable[[], bool], what: str) -> None:
        """Polls. Refusal if it ends before, or takes too long."""
        deadline = time.monotonic() + READY_PATIENCE_S
        while not condition():
            self.ensure_alive()
            if time.monotonic() > deadline:
                raise failure(self.name, f"{what}: not within {READY_PATIENCE_S:g} s: {last_line(self.log)}")
            time.sleep(POLL_S)

    def wait(self, patience_s: float) -> int | None:
        """Its exit status; None if it still runs then."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self.process.wait(max(0.0, patience_s))
        return None

    def wait_well(self, patience_s: float, statuses: tuple[int, ...] = (0,)) -> None:
        """Refusal unless it ends in time and with one of these exit statuses."""
        status = self.wait(patience_s)
        if status is None:
            raise failure(self.name, f"does not end within {patience_s:.0f} s: is the machine overloaded?")
        if status not in statuses:
            raise failure(self.name, f"exit status {status}: {last_line(self.log)}")

    def terminate(self) -> None:
        """Asks it and all below it to end."""
        for pid in self.pids():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)

    def kill(self) -> None:
        """Ends by force it, all below it and what it left behind in its session; returns when they are gone.
        Idempotent."""
        deadline = time.monotonic() + KILL_PATIENCE_S
        while (left := {*self._below(), *in_session(self.process.pid)}) and time.monotonic() < deadline:
            for pid in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            self.process.poll()  # collects it
            time.sleep(POLL_S)
        if self.process.stdin:
            with contextlib.suppress(BrokenPipeError):
                self.process.stdin.close()
        self.process.wait()

    def _below(self) -> tuple[int, ...]:
        """Not once it has been waited for: somebody else may have its number then."""
        return (*self.pids(), self.process.pid) if self.process.poll() is None else ()


def in_session(leader: int, proc: Path = Path("/proc")) -> tuple[int, ...]:
    """The processes of a session that still live; a zombie does not."""
    found = []
    for folder in proc.glob("[0-9]*"):
        with contextlib.suppress(OSError):
            state, _, _, session = (folder / "stat").read_text().rpartition(")")[2].split()[:4]
            if int(session) == leader and state != "Z":
                found.append(int(folder.name))
    return tuple(found)
