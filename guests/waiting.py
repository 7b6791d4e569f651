"""Waiting for what must come to be, on a machine that may be busy with something else."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

PATIENCE_S = 250.0
"""What ends a test that hangs; no assertion is about it. Beside a hundred others, or in a guest without KVM,
a command that takes a second takes minutes."""


def wait_for(condition: Callable[[], bool], patience_s: float = PATIENCE_S, every_s: float = 0.02) -> None:
    """Polls until it is so; fails if it never is."""
    deadline_s = time.monotonic() + patience_s
    while not condition():
        assert time.monotonic() < deadline_s, "it never came to be"
        time.sleep(every_s)


def gone(pid: int) -> bool:
    """Has it ended, though perhaps nobody has collected it?"""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True
