"""Was this knob's value inherited from a thread that we hold?"""

from __future__ import annotations

from collections.abc import Iterator

from ..linux import knob, procfs
from ..linux.errors import ThreadGone
from ..linux.knob import KnobRef, NativeKnob, NativeValue
from ..model import VcpuId
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
            if (
                inherited
                and ref.vcpu.start_ticks >= inherited.since_ticks
                and not self._own(pid, ref.kind, found)
            ):
                return inherited.prior
        return None

    def _own(self, pid: int, kind: NativeKnob, value: NativeValue) -> bool:
        """Would the main thread of this process have this value without us? Then nobody can tell that
        the newcomer has it from a sibling of which it is ours."""
        main = KnobRef(VcpuId(pid, pid, 0), kind)
        prior = self._ledger.prior_of_main(pid, kind)
        try:
            if prior is None:
                return knob.read_known(main) == value
            return prior == value or (prior == knob.UNSET.get(kind) and knob.unset(main) == value)
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
        except ThreadGone:
            return


def parent(pid: int) -> int:
    """The parent of a process: the second word after the name in its main thread's stat line (proc(5)); that
    of the process adds up the times of all its threads first, 0.12 ms where there are 4096."""
    line = procfs.read_bytes(f"{procfs.PROC}/{pid}/task/{pid}/stat")
    return int(line[line.rindex(b")") + 2 :].split(maxsplit=2)[1])
