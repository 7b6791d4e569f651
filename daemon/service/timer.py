"""When the next period is due, and whether somebody wants us to stop: the one place that sleeps."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from ..linux.uninterrupted import STOPPERS

HEARD = {*STOPPERS, signal.SIGHUP}

UNWATCHED_S = 0.8
"""The longest sleep at a stretch: with the look before it, less than the second within which the daemon is to
miss its journal. A rest takes up to 1.6 s (budget.py)."""


@contextmanager
def signals_held() -> Iterator[None]:
    """No signal of `HEARD` cuts anything short: a Timer sees them where it waits, an earlier one in its first
    wait. Whoever asks again while all is put back asks for the same."""
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, HEARD)
    try:
        yield
    finally:
        for number in HEARD:
            signal.sigtimedwait({number}, 0)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


class Timer:
    """Absolute deadlines on CLOCK_MONOTONIC, from now on; signals, which must be held, are seen only while
    waiting.

    So a signal never cuts a period in two, and a missed deadline is skipped, not queued.
    """

    def __init__(
        self,
        period_ns: int,
        limit: int | None = None,
        alive: Callable[[], None] = lambda: None,
        meanwhile: Callable[[], object] = lambda: None,
    ) -> None:
        """`alive` is called before each wait: whoever stops calling `wait` hangs. `meanwhile` is called
        in a wait that is longer than UNWATCHED_S, so often that no sleep is longer than that."""
        self.late = 0
        """How many periods were skipped so far because the one before them took too long."""
        self._period_ns = period_ns
        self._left = limit
        self._alive, self._meanwhile = alive, meanwhile
        self._deadline_ns = time.monotonic_ns()
        self._hung_up = False

    def wait(self, periods: int = 1) -> bool:
        """Sleep until so many periods are over. False: stop (asked to, or the last decision is made)."""
        self._alive()
        if self._left is not None:
            self._left -= 1
            if self._left < 0:
                return False
        rested_ns = self._deadline_ns + (periods - 1) * self._period_ns
        self._deadline_ns, skipped = next_deadline(rested_ns, time.monotonic_ns(), self._period_ns)
        self.late += skipped
        caught = self._sleep(HEARD)
        if caught is None or caught.si_signo in STOPPERS:
            return caught is None
        self._hung_up = True  # one more is the same wish, or is seen in the next period
        return self._sleep(STOPPERS) is None

    def reload_due(self) -> bool:
        """Was there a SIGHUP since this was asked last?"""
        due, self._hung_up = self._hung_up, False
        return due

    def _sleep(self, heard: Iterable[signal.Signals]) -> signal.struct_siginfo | None:
        """Until the deadline, or the first of these signals."""
        for _ in range(int(self._left_s() / UNWATCHED_S)):
            if caught := signal.sigtimedwait(heard, min(UNWATCHED_S, self._left_s())):
                return caught
            self._meanwhile()
        return signal.sigtimedwait(heard, self._left_s())

    def _left_s(self) -> float:
        return max(self._deadline_ns - time.monotonic_ns(), 0) / 1e9


def next_deadline(deadline_ns: int, now_ns: int, period_ns: int) -> tuple[int, int]:
    """The first deadline of the series after `now_ns`, and how many before it have passed unused."""
    skipped = max(0, (now_ns - deadline_ns) // period_ns)
    return deadline_ns + (skipped + 1) * period_ns, skipped
