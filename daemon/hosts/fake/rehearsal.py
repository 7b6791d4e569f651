"""A fake kernel at the real pace: `backend = "fake"` tries a configuration where nothing may be touched."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from ...model import Snapshot, ThreadState, VcpuId
from ...roster import RosterEntry
from .fake import FakeHost, Stretch


class Rehearsal(FakeHost):
    """Knows every thread of the roster; every other one is hungry, the rest sleep."""

    def __init__(self, cores: int, *, dry_run: bool, clock: Callable[[], int] = time.monotonic_ns) -> None:
        super().__init__(cores, dry_run=dry_run)
        self._now = clock
        self._seen_ns = clock()
        self._cast: dict[tuple[int, int], VcpuId] = {}

    def observe(self, roster: Sequence[RosterEntry]) -> Snapshot:
        """The fake kernel as the time that really passed left it."""
        now_ns = self._now()
        elapsed_ns = max(now_ns - self._seen_ns, 1)
        self._seen_ns = now_ns
        hungry = Stretch(elapsed_ns // 2, elapsed_ns // 2, 10, ThreadState.READY)
        self.advance(elapsed_ns, [(vcpu, hungry) for vcpu in list(self._cast.values())[::2]])
        present = {numbers for entry in roster for numbers in entry.threads}
        for numbers in self._cast.keys() - present:
            self.end(self._cast.pop(numbers))
        for numbers in sorted(present - self._cast.keys()):
            self._cast[numbers] = self.spawn(*numbers)
        return super().observe(roster)
