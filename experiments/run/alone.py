"""The folder that an experiment writes into, while it does."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from dasec.errors import ExitStatus, Refusal
from dasec.lab.kit.writable import ensure_writable

PROBE = "writable"
"""A file that is tried, and gone again."""


@contextlib.contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """It is there, and nobody else measures into it meanwhile: two would measure the same, and each cut off
    what the other writes. One that stays empty is gone afterwards. Refuses what cannot be written."""
    was_there = folder.exists()
    ensure_writable(folder / PROBE)
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        _take(descriptor, folder)
        yield
    finally:
        os.close(descriptor)
        if not was_there:
            with contextlib.suppress(OSError):  # it has something in it
                folder.rmdir()


def _take(descriptor: int, folder: Path) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        what = f"{folder}: an experiment writes there already: wait for its end, or name another folder"
        raise Refusal(ExitStatus.FAILED, what) from None
