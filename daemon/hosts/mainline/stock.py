"""A kernel as it comes: slices, masks and the weights of groups, by the interfaces that every kernel has."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from ...bpf.libbpf import BpfUnavailable
from ...knobs.knob import Write
from ...model import Counters, VcpuId
from ..threads.adopt import Adoption
from ..threads.interface import Adopts
from ..threads.looks import Looks
from ..threads.notices import Notices
from ..threads.thread import ManagedThread
from .batch import BatchSampler, Seating
from .sample import Sampler


class StockKernel:
    """A kernel as it comes: by one BPF call where that works, else from /proc, thread by thread."""

    def __init__(self, *, bpf: bool) -> None:
        self._notices = Notices()
        self._batch = _batch(self._notices) if bpf else None

    def adoption(self, stock: Adoption) -> Adopts:
        """See KernelInterface."""
        return stock

    def sampler(self, threads: Sequence[ManagedThread], counters: dict[VcpuId, Counters]) -> Looks:
        """By one BPF call where that works and has a seat for everybody, else from /proc."""
        if self._batch is not None and len(threads) <= self._batch.seats:
            return BatchSampler(threads, counters, self._batch)
        return Sampler(threads, counters)

    def write_together(self, writes: Sequence[Write]) -> Collection[Write]:
        """See KernelInterface."""
        return ()

    def notices(self) -> tuple[str, ...]:
        """See KernelInterface."""
        return self._notices.take()

    def close(self) -> None:
        """See KernelInterface."""
        if self._batch is not None:
            self._batch.close()


def _batch(notices: Notices) -> Seating | None:
    """The kernel's counters in one call, or None, with one line that says why not."""
    try:
        return Seating()
    except BpfUnavailable as unavailable:
        notices.say("counters", f"counters are read from /proc, thread by thread: {unavailable}")
        return None
