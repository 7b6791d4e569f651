"""A thread as the mainline host adopts it, with the knobs that our scheduler gives it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ...knobs.knob import KnobRef, Write
from ...knobs.policies import POLICY
from ...knobs.weights import weight_of_nice
from ...knobs.words import EXT_LATENCY, EXT_WEIGHT
from ...linux import schedattr
from ...linux.cgroupfs import Hierarchy
from ...linux.errors import ThreadGone
from ...linux.schedattr import SCHED_EXT
from ...model import Knob, Knobs
from ...roster import Terms
from ..threads.adopt import Adoption, number_held
from ..threads.ahead import write_ahead
from ..threads.thread import HeldKnob, ManagedThread


@dataclass(frozen=True, slots=True)
class ExtAdoption:
    """Adopts by way of `stock`. A thread's weight is its own, in whatever group it is: the scheduler shares
    a VM's time among all its threads and does not look at the groups below it. `has_ended`: the kernel has
    put the scheduler out, so that there are only masks to set. `switches`: the scheduler has a thread only
    from when we say so to the kernel; its children are born so, and get what it had before us."""

    stock: Adoption
    slice_ns: int
    has_ended: Callable[[], bool]
    switches: bool = False

    @property
    def hierarchy(self) -> Hierarchy | None:
        """The cpu cgroup hierarchy, if there is one."""
        return self.stock.hierarchy

    def adopt(self, pid: int, tid: int, terms: Terms | None = None) -> ManagedThread | str:
        """See Adopts."""
        if self.switches and terms is not None and terms.emulator:
            return "in partial mode all that QEMU starts would be our scheduler's, too"
        thread = self.stock.adopt(pid, tid, terms)
        if isinstance(thread, str):
            return thread
        thread.weight, thread.crowded = None, False
        thread.take_up({EXT_WEIGHT: weight_of_nice(thread.nice), EXT_LATENCY: self.slice_ns})
        if self.has_ended():
            thread.knobs = Knobs(None, None, thread.knobs.affinity)
            return thread
        proc, weighs = self.stock.proc, self.stock.capabilities.weight
        try:
            thread.knobs = Knobs(
                number_held(thread, Knob.WEIGHT, proc) if weighs else None,
                number_held(thread, Knob.RESCHEDULING_LATENCY, proc),
                thread.knobs.affinity,
            )
            if self.switches:
                self._switch(thread)
        except OSError as error:
            thread.kept.close()
            return f"our scheduler cannot have it: {error.strerror}"
        except ThreadGone:
            thread.kept.close()
            raise
        return thread

    def settle(self, thread: ManagedThread) -> int | None:
        """See Adopts: where it was."""
        return thread.knobs.weight

    def _switch(self, thread: ManagedThread) -> None:
        """From now on it is our scheduler's. Raises ThreadGone, or OSError."""
        ref = KnobRef(thread.id, POLICY)
        prior = schedattr.policy_of(thread.id.tid)
        write_ahead(self.stock.journal, Write(ref, prior, SCHED_EXT), self.stock.proc)
        thread.hold(HeldKnob(ref, prior, SCHED_EXT, prior, SCHED_EXT))
