"""A thread as the mainline host adopts it, with the knobs that the kernel patch adds."""

from __future__ import annotations

import errno
from dataclasses import dataclass

from ...knobs.patched import GRANULARITY, THREAD_WEIGHT
from ...knobs.weights import weight_of_nice
from ...linux import procfs
from ...linux.cgroupfs import Hierarchy
from ...linux.errors import ThreadGone
from ...model import Knob, Knobs
from ...roster import Terms
from ..threads.adopt import Adoption, number_held
from ..threads.thread import ManagedThread


@dataclass(frozen=True, slots=True)
class PatchedAdoption:
    """Adopts by way of `stock`, which finds the vCPUs that are alone in their group."""

    stock: Adoption
    unset_granularity_ns: int
    proc: str = procfs.PROC

    @property
    def hierarchy(self) -> Hierarchy | None:
        """The cpu cgroup hierarchy, if there is one."""
        return self.stock.hierarchy

    def adopt(self, pid: int, tid: int, terms: Terms | None = None) -> ManagedThread | str:
        """See Adopts."""
        thread = self.stock.adopt(pid, tid, terms)
        if isinstance(thread, str):
            return thread
        thread.take_up({GRANULARITY: self.unset_granularity_ns, THREAD_WEIGHT: weight_of_nice(thread.nice)})
        try:
            thread.knobs = Knobs(
                self._weight(thread),
                number_held(thread, Knob.RESCHEDULING_LATENCY, self.proc),
                thread.knobs.affinity,
            )
        except OSError as error:
            thread.kept.close()
            return f"its dasec file cannot be read: {_why(error)}"
        except ThreadGone:
            thread.kept.close()
            raise
        return thread

    def settle(self, thread: ManagedThread) -> int | None:
        """See Adopts."""
        shown = self.stock.settle(thread)
        return shown if thread.weight is not None else self._weight(thread)

    def _weight(self, thread: ManagedThread) -> int | None:
        if thread.weight is not None or not self.stock.capabilities.weight:
            return thread.knobs.weight
        return number_held(thread, Knob.WEIGHT, self.proc)


def _why(error: OSError) -> str:
    if error.errno in (errno.EACCES, errno.EPERM):
        return f"{error.strerror}: run as root, or as its owner"
    return error.strerror or str(error)
