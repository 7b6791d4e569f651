"""When a newcomer is adopted: at once where a workload grows, later where its threads come and go.

Adopting costs 0.12 ms: ten files of the kernel. A workload has one adoption for each thread that it has more
than ever before, so that whatever starts is adopted at once; threads that take the place of others are paid
for out of what the whole host earns, so many a second. Those who have waited longest come first: a thread
that lives gets there, and threads that live for a third of a second cost no more than that, however many.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from ...parts import fair_parts
from .places import Attended, Numbers

EARNED_A_SECOND = 25
"""On the whole host, 0.3 % of a core: less than a third of the default budget."""

SPARE = 64
"""More than a workload has threads, so that a small one that starts again need not wait: 8 ms, once."""

AT_A_LOOK = 512
"""60 ms: a look that takes longer than a period is late."""


@dataclass(slots=True)
class _Purse:
    """A workload's newcomers, in the order in which they came, and the adoptions that it may have."""

    queue: dict[Numbers, None] = field(default_factory=dict)
    ever: int = 0
    saved: float = SPARE

    def grow(self, size: int) -> None:
        """So many threads there are: what it has more than ever is free."""
        grown = max(0, size - self.ever)
        self.ever, self.saved = self.ever + grown, self.saved + grown

    def earn(self, adoptions: float) -> None:
        """Saved as far as all its threads could come anew."""
        self.saved = min(self.ever + SPARE, self.saved + adoptions)

    def line_up(self, newcomers: Iterable[Numbers]) -> None:
        """These wait now, and no others."""
        waiting = dict.fromkeys(newcomers)
        self.queue = {numbers: None for numbers in (*self.queue, *waiting) if numbers in waiting}

    def take(self, count: int) -> list[Numbers]:
        """The first of the queue, paid for."""
        taken = list(self.queue)[:count]
        for numbers in taken:
            del self.queue[numbers]
        self.saved -= count
        return taken


class Arrivals:
    """Who waits to be adopted."""

    def __init__(self) -> None:
        self._purses: dict[str, _Purse] = {}
        self._clock_ns = 0

    @property
    def waiting(self) -> bool:
        """Does anybody?"""
        return any(purse.queue for purse in self._purses.values())

    def admit(
        self, rows: Iterable[Attended], known: Callable[[Numbers], bool], clock_ns: int
    ) -> list[Numbers]:
        """Whom of those that are not known yet to adopt in this look."""
        threads: dict[str, list[Numbers]] = {}
        for row in rows:
            threads.setdefault(row.workload, []).extend(row.members)
        self._purses = {name: self._purses.get(name) or _Purse() for name in threads}
        self._earn((clock_ns - self._clock_ns) / 1e9 if self._clock_ns else 0.0)
        self._clock_ns = clock_ns
        for name, purse in self._purses.items():
            purse.grow(len(threads[name]))
            purse.line_up([numbers for numbers in threads[name] if not known(numbers)])
        purses = tuple(self._purses.values())
        parts = fair_parts([min(len(one.queue), int(one.saved)) for one in purses], AT_A_LOOK)
        return [numbers for purse, part in zip(purses, parts, strict=True) for numbers in purse.take(part)]

    def _earn(self, passed_s: float) -> None:
        """Equally, between those who have spent something."""
        poorer = [purse for purse in self._purses.values() if purse.saved < purse.ever + SPARE]
        for purse in poorer:
            purse.earn(EARNED_A_SECOND * passed_s / len(poorer))
