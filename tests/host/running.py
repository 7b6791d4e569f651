"""A running daemon whose log and status a test reads meanwhile, and a process to be managed by it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from dasec.errors import ExitStatus
from dasec.lab.load_tool import find_tool
from guests.waiting import PATIENCE_S, wait_for

RATE = 20 if os.environ.get("DASEC_GUEST") == "1" else 100
"""Bursts a second of each thread. Those of eight at 100 leave an emulated machine little for the daemon: its
start took four times as long beside them."""


@contextmanager
def loaded(*words: str) -> Iterator[tuple[subprocess.Popen[str], dict[str, Any]]]:
    """`dasec-load` from when it has all its threads: its process, and what it says of them."""
    with subprocess.Popen([str(find_tool()), *words], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process, json.loads(process.stdout.readline())
        finally:
            process.kill()


@contextmanager
def burner(threads: int = 8, *, rate: float = RATE, burst_us: int = 300) -> Iterator[subprocess.Popen[str]]:
    """A process whose threads burn now and then; it has all of them."""
    numbers = ("--threads", str(threads - 1), "--burst-us", str(burst_us), "--rate", str(rate))
    with loaded("threads", *numbers) as (process, _):
        yield process


class Running:
    """`dasec run`, from its first status to its end."""

    def __init__(
        self,
        place: Path,
        config: Path,
        *program: str,
        record: Path | None = None,
        within: Sequence[str] = (),
    ) -> None:
        """`within`: the beginning of a command that runs the rest of it, as the same process."""
        self.state, self._log = place / "state", place / "log"
        command = [*within, sys.executable, *(program or ("-m", "dasec")), "run", "--config", str(config)]
        command += ["--directory", str(self.state), *(("--record", str(record)) if record else ())]
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(command, stderr=log)
        self.pid = self._process.pid

    def __enter__(self) -> Self:
        wait_for(lambda: (self.state / "status.json").exists() or self._process.poll() is not None)
        assert self._process.poll() is None, self.log()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()

    def log(self) -> str:
        """All that it has said."""
        return self._log.read_text()

    def said(self, words: str) -> int:
        """In how many lines."""
        return sum(words in line for line in self.log().splitlines())

    def wait_to_say(self, words: str) -> None:
        """Until it has."""
        wait_for(lambda: self.said(words) > 0 or self._process.poll() is not None)
        assert self.said(words), self.log()

    def status(self) -> dict[str, Any]:
        """Its last status."""
        found: dict[str, Any] = json.loads((self.state / "status.json").read_text())
        return found

    def wait_for_work(self) -> None:
        """Until it holds a knob."""
        wait_for(lambda: self.status()["knobs_held"]["rescheduling_latency"] > 0)

    def stop(self) -> None:
        """In order."""
        self._process.terminate()
        assert self._process.wait(PATIENCE_S) == ExitStatus.DONE, self.log()
