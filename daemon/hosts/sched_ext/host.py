"""The host whose scheduler is ours: what a policy wants of a thread is a word to a BPF program.

The scheduler is loaded when the host is made and goes with it: unloaded by `close`, or by the kernel when
this process ends in any way. Counters, masks and the journal are those of the mainline host; who woke whom,
and what it cost whoever waited, is counted in the scheduler's own maps where it has all threads.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

from ...model import Capabilities, Restored, Snapshot
from ...roster import RosterEntry
from ..host import BY_DEFAULT, HostSettings
from ..threads.ahead import WriteAhead
from ..threads.host import ThreadsHost
from .kernel import ExtKernel
from .probe import put_out


class SchedExt(ThreadsHost):
    """A Host on our sched_ext scheduler. Raises BpfUnavailable when made where that cannot be loaded."""

    def __init__(
        self,
        journal: WriteAhead,
        capabilities: Capabilities,
        settings: HostSettings = BY_DEFAULT,
    ) -> None:
        # A thread has a weight of its own here, so it needs no group of its own, and no nice.
        settings = replace(settings, own_groups=False, nice=False)
        self._kernel, self._partial = ExtKernel(settings), settings.partial
        super().__init__(journal, capabilities, self._kernel, settings, edges=self._kernel.edges)
        try:
            self._kernel.load(journal)  # what the journal holds before that is in custody
        except BaseException:
            self._edges.close()
            self._kernel.close()
            raise

    def observe(self, roster: Sequence[RosterEntry]) -> Snapshot:
        """The state of every vCPU of the roster now. If the scheduler was put out, nothing is held any more,
        and no thread has a weight or a latency to set."""
        if not self._kernel.attend(time.monotonic_ns()):
            self.restore()
            for thread in self._crew.threads():
                for kind in thread.defaults:
                    thread.show(kind, None)
            self._capabilities = put_out(self.capabilities, self._edges.note)
        return super().observe(roster)

    def restore(self) -> Restored:
        """Put every knob that we hold back to its prior value. Whoever our scheduler had only by its policy
        is adopted anew by who goes on observing: that gives it back."""
        restored = super().restore()
        if self._partial:
            self._crew.let_go(self._crew.threads())
        return restored
