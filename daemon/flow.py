"""Lines of one kind: the first of a minute as they are, of the others how many there were.

What a workload can cause it can cause as often as it likes, and a journal that drops lines drops any. So
whoever says something says of what kind it is, with the workload's name in it, and each kind has so many.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

LINES = 5
"""Of one kind in one window, and one that sums up."""

WINDOW_NS = 60_000_000_000


@dataclass(slots=True)
class _Window:
    """Since the first line of a kind: how many there were."""

    ends_ns: int
    lines: int = 0


class Flow:
    """Lets lines through."""

    def __init__(self, clock: Callable[[], int] = time.monotonic_ns) -> None:
        self._clock = clock
        self._windows: dict[str, _Window] = {}

    def lets_through(self, kind: str) -> bool:
        """Is another line of this kind to be said?"""
        window = self._windows.setdefault(kind, _Window(self._clock() + WINDOW_NS))
        window.lines += 1
        return window.lines <= LINES

    def sums(self) -> list[str]:
        """A line for each kind whose window is over and had more lines than were said."""
        if not self._windows:
            return []
        now_ns = self._clock()
        over = {kind: window for kind, window in self._windows.items() if window.ends_ns <= now_ns}
        for kind in over:
            del self._windows[kind]
        return [
            f"{kind}: {window.lines - LINES} more in the last minute"
            for kind, window in over.items()
            if window.lines > LINES
        ]
