"""Another sched_ext scheduler, a program that loads it and holds it: for comparisons."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

from ...linux import sched_ext
from .errors import failure
from .process import ensure_alive, last_line, wait_until

PATIENCE_S = 60.0
"""Some look at all CPUs and caches first; a guest that counts instructions is a tenth as fast as a host."""

STOP_PATIENCE_S = 20.0


@contextlib.contextmanager
def rival(program: Path, options: Sequence[str], log: Path) -> Iterator[None]:
    """It schedules meanwhile. Raises Refusal if it cannot, or did not last."""
    try:
        with log.open("wb") as output:
            process = subprocess.Popen(
                [str(program), *options], stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT
            )
    except OSError as error:
        raise failure(f"{program.name}: {error.strerror}") from error
    try:
        wait_until(lambda: _has_begun(process), program.name, PATIENCE_S)
        ensure_alive(process, program.name, log)
        yield
        if sched_ext.state() != "enabled":
            raise failure(f"{program.name}: the kernel put it out: {last_line(log)}")
    finally:
        process.terminate()
        wait_until(lambda: process.poll() is not None, f"{program.name}: stops", STOP_PATIENCE_S)
        wait_until(lambda: sched_ext.state() == "disabled", f"{program.name}: its end", PATIENCE_S)


def _has_begun(process: subprocess.Popen[bytes]) -> bool:
    return sched_ext.state() == "enabled" or process.poll() is not None
