"""Errands: what keeps a core busy for minutes, done by a process of its own while tests use the next core.

A test that reads the outcome of an errand names it: `@pytest.mark.ahead.with_args(errand)`. A second
process does the errands that the run will need, the last first; the tests begin with those that need none.
Whoever comes to an errand first does it, and the other one waits for it: near the end two guests run at once.
A process and not a thread, because tests change directories, environments and groups of theirs.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import pickle
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

REPOSITORY = Path(__file__).resolve().parent.parent
ORDER, LOG, TOOK = "order", "log", ".took"
LOOK_EVERY_S = 0.5

T = TypeVar("T")
Errand = Callable[[], object]
"""A frozen dataclass: it is pickled, and one that looks the same is the same."""


class Ahead:
    """The errands of a test run; what came of them lies in `folder`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, errands: Sequence[Errand]) -> None:
        """Begins to do them, in this order."""
        (self._folder / ORDER).write_bytes(pickle.dumps(tuple(errands)))
        with (self._folder / LOG).open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.ahead", str(self._folder)],
                cwd=REPOSITORY,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # `stop` ends it with everything that it has started
            )

    def result(self, errand: Callable[[], T]) -> T:
        """What came of it; done now if nobody has begun it."""
        name = hashlib.sha256(repr(errand).encode()).hexdigest()[:16]
        kept = self._folder / name
        with (self._folder / f"{name}.lock").open("wb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not kept.exists():
                unfinished = kept.with_suffix(".new")
                began_s, computed_s = time.monotonic(), _computed_s()
                unfinished.write_bytes(pickle.dumps(errand()))
                took = f"{time.monotonic() - began_s:4.0f} s, CPU {_computed_s() - computed_s:4.0f} s"
                kept.with_suffix(TOOK).write_text(f"{took}: {errand}\n", encoding="utf-8")
                unfinished.rename(kept)
        found: T = pickle.loads(kept.read_bytes())
        return found

    def took(self) -> Sequence[str]:
        """A line for each errand that was done, the dearest first."""
        lines = [each.read_text(encoding="utf-8") for each in self._folder.glob(f"*{TOOK}")]
        return sorted(lines, reverse=True)

    def wait(self) -> None:
        """Until no errand is left, so that the machine belongs to the test."""
        if self._process is not None:
            self._process.wait()

    def close(self) -> None:
        """Ends what is not finished, and forgets what came of the rest."""
        if self._process is not None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        shutil.rmtree(self._folder, ignore_errors=True)


def _computed_s() -> float:
    """By processes of ours that have ended: a guest, as a rule."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return ended.ru_utime + ended.ru_stime


def _end_with(parent: int) -> None:
    """A test run that is killed leaves no guest behind."""
    while os.getppid() == parent:
        time.sleep(LOOK_EVERY_S)
    os.killpg(0, signal.SIGKILL)


def main(folder: Path) -> None:
    """Does the errands. One that fails is done again by its test, which then shows why."""
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    ahead = Ahead(folder)
    errands: tuple[Errand, ...] = pickle.loads((folder / ORDER).read_bytes())
    for errand in errands:
        try:
            ahead.result(errand)
        except Exception:  # noqa: BLE001
            traceback.print_exc()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
