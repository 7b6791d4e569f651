"""Was this knob's value inherited from a thread that we hold?"""

from __future__ import annotations

from collections.abc import Iterator

from ..knobs import knob
from ..knobs.knob import KnobRef, NativeKnob, NativeValue
from ..linux import procfs
from ..linux.errors import ThreadGone
from ..model import VcpuId
from .journal.codec import Bequest
from .journal.ledger import ANY_PROCESS, Ledger

_GENERATIONS = 4
"""How many parents are asked: a shell, its subshell, a supervisor and its worker."""


class Heirs:
    """Knows newcomers by the values of ours that they were born with."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    def prior(self, ref: KnobRef, found: NativeValue) -> NativeValue | None:
        """The value that the newcomer would have without us, or None if `found` is its own."""
        if not ref.kind.inherited:
            return None
        if ref.kind.found_anywhere:
            inherited = self._ledger.bequest(ANY_PROCESS, ref.kind, found)
            return inherited.prior if inherited else None
        for pid in lineage(ref.vcpu.pid):
            inherited = self._ledger.bequest(pid, ref.kind, found) or self._cut(pid, ref, found)
            if (
                inherited
                and ref.vcpu.start_ticks >= inherited.since_ticks
                and not self._own(pid, ref.kind, found)
            ):
                return inherited.prior
        return None

    def _cut(self, pid: int, ref: KnobRef, found: NativeValue) -> Bequest | None:
        """A mask of ours of which the cpuset, or what is online, leaves just this."""
        for one in self._ledger.bequests_of(pid, ref.kind):
            try:
                if ref.kind.may_read(one.value, found) and knob.in_force(ref, one.value) == found:
                    return one
            except (ThreadGone, OSError):
                break
        return None

    def _own(self, pid: int, kind: NativeKnob, value: NativeValue) -> bool:
        """Would the main thread of this process have this value without us? Then nobody can tell that
        the newcomer has it from a sibling of which it is ours."""
        main = KnobRef(VcpuId(pid, pid, 0), kind)
        prior = self._ledger.prior_of_main(pid, kind)
        try:
            if prior is None:
                return knob.read_known(main) == value
            return prior == value or knob.in_force(main, prior) == value
        except (ThreadGone, OSError):
            return False


def lineage(pid: int) -> Iterator[int]:
    """The process, its parent, its parent's parent, as far as they live."""
    for _ in range(_GENERATIONS):
        if pid <= 1:
            return
        yield pid
        try:
            pid = parent(pid)
        except (ThreadGone, OSError):
            return


def parent(pid: int) -> int:
    """The parent of a process: the second word after the name in its main thread's stat line (proc(5)); that
    of the process adds up the times of all its threads first, 0.12 ms where there are 4096."""
    return procfs.parse_parent(procfs.read_bytes(f"{procfs.PROC}/{pid}/task/{pid}/stat"))
