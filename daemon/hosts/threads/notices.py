"""What the host has to say to an operator, a bounded number of lines of each kind."""

from __future__ import annotations

import time
from collections.abc import Callable

from ...flow import Flow


class Notices:
    """Collects lines until somebody asks for them."""

    def __init__(self, clock: Callable[[], int] = time.monotonic_ns) -> None:
        self._flow = Flow(clock)
        self._lines: list[str] = []

    def say(self, kind: str, line: str) -> None:
        """`kind`: whose and what about, in words that can stand before a number of such lines."""
        if self._flow.lets_through(kind):
            self._lines.append(line)

    def take(self) -> tuple[str, ...]:
        """What was said since the last time, and what is to be summed up."""
        lines = (*self._lines, *self._flow.sums())
        self._lines.clear()
        return lines
