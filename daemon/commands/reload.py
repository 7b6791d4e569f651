"""`dasec reload`: asks the running daemon to read its configuration again, and waits for its answer."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from ..errors import ExitStatus, Refusal
from ..service.status import Absent, Status, read

_LOOK_EVERY_S = 0.02
_LOOKS = 500
"""Ten seconds. The answer takes a period, unless the daemon cannot observe or its directory is full."""


def ask(directory: Path) -> str:
    """What the daemon of `directory` did, in one line. Raises Refusal with its reasons if it did nothing."""
    before = _running(directory)
    try:
        os.kill(before["pid"], signal.SIGHUP)
    except OSError as error:
        raise Refusal(
            ExitStatus.HOST, f"process {before['pid']}: {error.strerror}: run as the daemon's user"
        ) from error
    now = _answer(directory, before)
    if now["not_reloaded"]:
        raise Refusal(
            ExitStatus.USAGE, *now["not_reloaded"], "the daemon keeps the configuration that it had"
        )
    return f"reloaded: policy {now['policy']}"


def _answer(directory: Path, before: Status) -> Status:
    for _ in range(_LOOKS):
        now = _running(directory)
        if now["reloads"] != before["reloads"]:
            return now
        time.sleep(_LOOK_EVERY_S)
    raise Refusal(ExitStatus.FAILED, f"process {before['pid']}: has not answered: see its log")


def _running(directory: Path) -> Status:
    found = read(directory, time.monotonic_ns())
    if isinstance(found, Absent):
        raise Refusal(ExitStatus.FAILED, found.why)
    return found
