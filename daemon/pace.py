"""When the next period is due, and whether somebody wants us to stop: the one place that sleeps."""

from __future__ import annotations

import signal
import time
from types import TracebackType
from typing import Self

STOPPERS = {signal.SIGTERM, signal.SIGINT}


class Pace:
    """Absolute deadlines on CLOCK_MONOTONIC; stop signals are blocked and seen only while waiting.

    So a signal never cuts a period in two, and a missed deadline is skipped, not queued.
    """

    def __init__(self, period_ns: int, limit: int | None = None) -> None:
        self.late = 0
        """How many periods were skipped so far because the one before them took too long."""
        self._period_ns = period_ns
        self._left = limit
        self._deadline_ns = time.monotonic_ns()
        self._mask: set[signal.Signals | int] = set()

    def __enter__(self) -> Self:
        self._mask = set(signal.pthread_sigmask(signal.SIG_BLOCK, STOPPERS))
        self._deadline_ns = time.monotonic_ns()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        signal.pthread_sigmask(signal.SIG_SETMASK, self._mask)

    def wait(self, periods: int = 1) -> bool:
        """Sleep until so many periods are over. False: stop (asked to, or the last decision is made)."""
        if self._left is not None:
            self._left -= 1
            if self._left < 0:
                return False
        rested_ns = self._deadline_ns + (periods - 1) * self._period_ns
        self._deadline_ns, skipped = next_deadline(rested_ns, time.monotonic_ns(), self._period_ns)
        self.late += skipped
        left_ns = max(self._deadline_ns - time.monotonic_ns(), 0)
        return signal.sigtimedwait(STOPPERS, left_ns / 1e9) is None


def next_deadline(deadline_ns: int, now_ns: int, period_ns: int) -> tuple[int, int]:
    """The first deadline of the series after `now_ns`, and how many before it have passed unused."""
    skipped = max(0, (now_ns - deadline_ns) // period_ns)
    return deadline_ns + (skipped + 1) * period_ns, skipped
