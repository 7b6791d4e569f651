"""Where a kernel that offers more than the stock one comes in: adopting, sampling, writing."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol

from ...bpf.libbpf import BpfUnavailable
from ...linux.cgroupfs import Hierarchy
from ...linux.knob import Write
from ...model import Counters, VcpuId
from .adopt import Adoption
from .batch import BatchSampler, Seating
from .notices import Notices
from .sample import Looks, Sampler
from .thread import ManagedThread


class Adopts(Protocol):
    """Makes managed threads."""

    @property
    def hierarchy(self) -> Hierarchy | None:
        """The cpu cgroup hierarchy, if there is one."""

    def adopt(self, pid: int, tid: int) -> ManagedThread | str:
        """The managed thread, or why it must be left alone. Raises ThreadGone."""


class Fittings(Protocol):
    """What differs from kernel to kernel."""

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


class Stock:
    """A kernel as it comes: by one BPF call where that works, else from /proc, thread by thread."""

    def __init__(self, notices: Notices, *, bpf: bool) -> None:
        self._batch = _batch(notices) if bpf else None

    def adoption(self, stock: Adoption) -> Adopts:
        """See Fittings."""
        return stock

    def sampler(self, threads: Sequence[ManagedThread], counters: dict[VcpuId, Counters]) -> Looks:
        """By one BPF call where that works and has a seat for everybody, else from /proc."""
        if self._batch is not None and len(threads) <= self._batch.seats:
            return BatchSampler(threads, counters, self._batch)
        return Sampler(threads, counters)

    def write_together(self, writes: Sequence[Write]) -> Collection[Write]:
        """See Fittings."""
        return ()

    def notices(self) -> tuple[str, ...]:
        """See Fittings."""
        return ()

    def close(self) -> None:
        """See Fittings."""
        if self._batch is not None:
            self._batch.close()


def _batch(notices: Notices) -> Seating | None:
    """The kernel's counters in one call, or None, with one line that says why not."""
    try:
        return Seating()
    except BpfUnavailable as unavailable:
        notices.say("counters", f"counters are read from /proc, thread by thread: {unavailable}")
        return None
