"""CPU limits that somebody sets while our scheduler runs, which keeps none."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ...bpf.scx import limits

EVERY_NS = 3_000_000_000
"""From one walk over all groups to the next: with a look that comes up to 1.6 s later (budget.py), or a
second and what that takes (`dasec scx`), within 5 s."""


class LimitWatch:
    """Finds them, and does not look too often: 15 ms of CPU time for 1000 groups (docs/measurements.md, "Cost
    of small things")."""

    def __init__(self, find: Callable[[], Iterable[str]] = limits) -> None:
        self._find = find
        self._due_ns = 0

    def found(self, clock_ns: int) -> str | None:
        """One, in words, if it is time to look and there is any."""
        if clock_ns < self._due_ns:
            return None
        self._due_ns = clock_ns + EVERY_NS
        return next(iter(self._find()), None)
