"""A thread as the mainline host adopts it, with the knobs that our scheduler gives it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ...knobs import knob
from ...knobs.knob import KnobRef
from ...knobs.weights import weight_of_nice
from ...knobs.words import EXT_LATENCY, EXT_WEIGHT
from ...linux.cgroupfs import Hierarchy
from ...linux.errors import ThreadGone
from ...model import Knob, Knobs
from ..threads.adopt import Adoption
from ..threads.thread import ManagedThread


@dataclass(frozen=True, slots=True)
class ExtAdoption:
    """Adopts by way of `stock`. A thread's weight is its own, in whatever group it is: the scheduler shares
    a VM's time among all its threads and does not look at the groups below it. `has_ended`: the kernel has
    put the scheduler out, so that there are only masks to set."""

    stock: Adoption
    slice_ns: int
    has_ended: Callable[[], bool]

    @property
    def hierarchy(self) -> Hierarchy | None:
        """The cpu cgroup hierarchy, if there is one."""
        return self.stock.hierarchy

    def adopt(self, pid: int, tid: int) -> ManagedThread | str:
        """The managed thread, or why it must be left alone. Raises ThreadGone."""
        thread = self.stock.adopt(pid, tid)
        if isinstance(thread, str):
            return thread
        thread.weight = None
        thread.take_up({EXT_WEIGHT: weight_of_nice(thread.nice), EXT_LATENCY: self.slice_ns})
        if self.has_ended():
            thread.knobs = Knobs(None, None, thread.knobs.affinity)
            return thread
        try:
            thread.knobs = Knobs(
                self._shown(thread, Knob.WEIGHT) if self.stock.capabilities.weight else None,
                self._shown(thread, Knob.RESCHEDULING_LATENCY),
                thread.knobs.affinity,
            )
        except OSError as error:
            thread.kept.close()
            return f"what our scheduler knows of it cannot be read: {error.strerror}"
        except ThreadGone:
            thread.kept.close()
            raise
        return thread

    def _shown(self, thread: ManagedThread, which: Knob) -> int:
        kind = thread.kind_of(which)
        value = thread.model_of(kind, knob.read_known(KnobRef(thread.id, kind), self.stock.proc))
        assert isinstance(value, int), f"{kind} is a number"
        return value
