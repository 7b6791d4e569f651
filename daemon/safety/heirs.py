"""Was this knob's value inherited from a thread that we hold?"""

from __future__ import annotations

from collections.abc import Iterator

from ..linux import procfs
from ..linux.errors import ThreadGone
from ..linux.knob import KnobRef, NativeKnob, NativeValue
from .ledger import ANY_PROCESS, Ledger

_GENERATIONS = 4
"""How many parents are asked: a shell, its subshell, a supervisor and its worker."""


class Heirs:
    """Knows newcomers by the values of ours that they were born with."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    def prior(self, ref: KnobRef, found: NativeValue) -> NativeValue | None:
        """The value that the newcomer would have without us, or None if `found` is its own."""
        if ref.kind is NativeKnob.CGROUP:
            inherited = self._ledger.bequest(ANY_PROCESS, ref.kind, found)
            return inherited.prior if inherited else None
        for pid in lineage(ref.vcpu.pid):
            inherited = self._ledger.bequest(pid, ref.kind, found)
            if inherited and ref.vcpu.start_ticks >= inherited.since_ticks:
                return inherited.prior
        return None


def lineage(pid: int) -> Iterator[int]:
    """The process, its parent, its parent's parent, as far as they live."""
    for _ in range(_GENERATIONS):
        if pid <= 1:
            return
        yield pid
        try:
            pid = parent(pid)
        except ThreadGone:
            return


def parent(pid: int) -> int:
    """The parent of a process: the second word after the name in its stat line (proc(5))."""
    line = procfs.read_bytes(f"{procfs.PROC}/{pid}/stat")
    return int(line[line.rindex(b")") + 2 :].split(maxsplit=2)[1])
