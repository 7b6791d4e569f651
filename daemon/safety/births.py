"""Is a birth that began before a thread was put back over? Proven by the thread's progress, not by a pause.

clone(2) copies slice and mask first (dup_task_struct()) and shows the child last (list_add_tail_rcu()),
with work in between that a busy machine may interrupt for as long as it likes. Who was put back in
between has a child with our value that nobody can see yet. Such a birth is over as soon as the parent
is seen, after it was put back, in one of these ways:

- It has ended.
- It sleeps in a way that a signal ends, or is stopped. Nothing between those two steps of
  copy_process() does (6.1 and 7.2): it waits for memory and locks without signals or with deadly ones
  only, and both show as D. Waiting for a child after vfork(2) shows as D, too, until that has called exec.
- It has used more CPU time than a birth takes.

So an idle machine waits not at all, and one that has no time for the parent waits until it has.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ..linux.errors import ThreadGone
from ..model import VcpuId
from .kernel import Kernel

BIRTH_NS = 5_000_000
"""CPU time that the birth of a thread never takes: 0.04 to 0.22 ms were measured (decision 0035)."""

NS_PER_TABLE_KIB = 50_000
"""fork(2) copies page tables: 13 us for each KiB of them were measured."""

STALE_NS = 10_000_000
"""The kernel adds up a running thread's CPU time when it writes to the thread, and at each tick."""

PATIENCE_NS = 20_000_000_000
"""For everybody together. Who has not moved by then is reported, and stays in the journal."""

_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.001, 0.02
"""Between two looks: each twice as long as the one before."""

_LOOKS = 1010
"""Enough of them for all the patience."""


class _Since(NamedTuple):
    """What the parent and the hypervisor had used when it had just been put back, and what must be added."""

    ran_ns: int
    stolen_ns: int
    needs_ns: int


class Births:
    """Threads that were put back, as long as one of them may still be giving birth."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._until_ns = kernel.clock_ns() + PATIENCE_NS
        self._pending: dict[VcpuId, _Since] = {}

    def expect(self, parents: Iterable[VcpuId]) -> None:
        """These have just been put back."""
        for parent in parents:
            try:
                now = self._kernel.progress(parent)
                if not now.at_rest:
                    needs_ns = BIRTH_NS + STALE_NS + self._kernel.tables_kib(parent.pid) * NS_PER_TABLE_KIB
                    self._pending[parent] = _Since(now.ran_ns, self._kernel.stolen_ns(), needs_ns)
            except (ThreadGone, OSError):
                continue

    def await_end(self) -> bool:
        """Until none of them can be giving birth any more. False: there is no time left."""
        for look in range(_LOOKS):
            if not self._unfinished():
                return True
            if self.is_late():
                break
            self._kernel.pause(min(_FIRST_PAUSE_S * (1 << min(look, 10)), _LONGEST_PAUSE_S))
        return False

    def is_late(self) -> bool:
        """Has everybody together had all the time that there is?"""
        return self._kernel.clock_ns() >= self._until_ns

    def pending(self) -> frozenset[VcpuId]:
        """Who may still be giving birth, by the last look."""
        return frozenset(self._pending)

    def _unfinished(self) -> bool:
        self._pending = {who: since for who, since in self._pending.items() if not self._is_over(who, since)}
        return bool(self._pending)

    def _is_over(self, parent: VcpuId, since: _Since) -> bool:
        """Time that the hypervisor took may count as the thread's, so it is taken off."""
        try:
            now = self._kernel.progress(parent)
        except (ThreadGone, OSError):
            return True
        ran_ns = now.ran_ns - since.ran_ns - (self._kernel.stolen_ns() - since.stolen_ns)
        return now.at_rest or ran_ns >= since.needs_ns
