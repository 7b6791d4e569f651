"""CPU limits that somebody sets while our scheduler runs, which keeps none."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

from ...bpf.scx import limits

EVERY_NS = 3_000_000_000
"""From one walk over all groups to the next: with a look that comes up to 1.6 s later (budget.py), or a
second and what that takes (`dasec scx`), within 5 s."""

PART = 50
"""One part in so many of a core's time goes into it at most. A walk takes 15 ms for 1000 groups
(docs/measurements.md, "Cost of small things"), so from 4000 on walks are rarer: whoever was given a group can
make as many below it as he likes."""


class LimitWatch:
    """Finds them, and does not look too often. `cpu_ns`: a clock of what we use."""

    def __init__(
        self,
        find: Callable[[], Iterable[str]] = limits,
        cpu_ns: Callable[[], int] = time.thread_time_ns,
    ) -> None:
        self._find, self._cpu_ns = find, cpu_ns
        self._due_ns = 0

    def found(self, clock_ns: int) -> str | None:
        """One, in words, if it is time to look and there is any."""
        if clock_ns < self._due_ns:
            return None
        began_ns = self._cpu_ns()
        limit = next(iter(self._find()), None)
        self._due_ns = clock_ns + max(EVERY_NS, PART * (self._cpu_ns() - began_ns))
        return limit
