"""What differs from kernel to kernel: how threads are adopted, read, and written together."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol

from ...knobs.knob import Write
from ...linux.cgroupfs import Hierarchy
from ...model import Counters, VcpuId
from ...roster import Terms
from .adopt import Adoption
from .looks import Looks
from .thread import ManagedThread


class Adopts(Protocol):
    """Makes managed threads."""

    @property
    def hierarchy(self) -> Hierarchy | None:
        """The cpu cgroup hierarchy, if there is one."""

    def adopt(self, pid: int, tid: int, terms: Terms | None = None) -> ManagedThread | str:
        """The managed thread, on the terms of whoever made it, or why it must be left alone. Raises
        ThreadGone."""

    def settle(self, thread: ManagedThread) -> int | None:
        """Find out anew in which group it is, and where its weight is set. That weight; None: it has none
        that is ours to write. We hold no weight of it. Raises ThreadGone, or OSError."""


class KernelInterface(Protocol):
    """What a host of threads asks of its kernel."""

    def adoption(self, stock: Adoption) -> Adopts:
        """How threads are adopted here."""

    def sampler(self, threads: Sequence[ManagedThread], counters: dict[VcpuId, Counters]) -> Looks:
        """How these threads are read from now on, instead of those before."""

    def write_together(self, writes: Sequence[Write]) -> Collection[Write]:
        """Those of the writes that could be made in few steps, all or nothing; the others are still to
        be made one by one. They are in the journal, and the identity of their threads is proven."""

    def notices(self) -> tuple[str, ...]:
        """What an operator should hear, each once."""

    def close(self) -> None:
        """Let all descriptors go."""
