"""The host for CFS with our patch: one read and one write a process and period (linux/dasecfile.py).

Everything that is not about the patch's file is that of all hosts of threads: who is managed, masks,
weights of vCPUs that are alone in their group, the journal, what is put back.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace

from ...knobs.knob import Write
from ...linux import procfs
from ...model import Capabilities, Counters, VcpuId
from ..host import BY_DEFAULT, HostSettings
from ..threads.adopt import Adoption
from ..threads.ahead import WriteAhead
from ..threads.host import ThreadsHost
from ..threads.interface import Adopts
from ..threads.looks import Looks
from ..threads.notices import Notices
from ..threads.thread import ManagedThread
from .adopt import PatchedAdoption
from .files import ProcessFiles
from .sample import FileSampler
from .unset import granularity_ns


class PatchedCfs(ThreadsHost):
    """A Host on a kernel with our patch."""

    def __init__(
        self, journal: WriteAhead, capabilities: Capabilities, settings: HostSettings = BY_DEFAULT
    ) -> None:
        # A thread has a weight of its own here, so it needs no group of its own, and no nice.
        settings = replace(settings, own_groups=False, nice=False)
        super().__init__(journal, capabilities, PatchedKernel(granularity_ns()), settings)
        self._capabilities = capabilities  # its wake-up sources come with the file, not from outside


class PatchedKernel:
    """What the patch adds; see KernelInterface."""

    def __init__(self, unset_granularity_ns: int, proc: str = procfs.PROC) -> None:
        self._unset_granularity_ns = unset_granularity_ns
        self._files = ProcessFiles(proc)
        self._proc = proc
        self._notices = Notices()
        self._weights: Counter[bool] = Counter()

    def adoption(self, stock: Adoption) -> Adopts:
        """Threads get the patch's knobs on top."""
        return PatchedAdoption(stock, self._unset_granularity_ns, self._proc)

    def sampler(self, threads: Sequence[ManagedThread], counters: dict[VcpuId, Counters]) -> Looks:
        """One that reads whole processes."""
        self._files.keep(frozenset(thread.id.pid for thread in threads))
        self._say_where_weights_go(threads)
        return FileSampler(threads, counters, self._files)

    def write_together(self, writes: Sequence[Write]) -> Collection[Write]:
        """The patch's knobs, a transaction a process."""
        return self._files.write_together(writes)

    def notices(self) -> tuple[str, ...]:
        """Where weights go, whenever that changes."""
        return self._notices.take()

    def close(self) -> None:
        """Let all descriptors go."""
        self._files.keep(frozenset())

    def _say_where_weights_go(self, threads: Sequence[ManagedThread]) -> None:
        weights = Counter(thread.weight is not None for thread in threads)
        if weights != self._weights and threads:
            self._notices.say(
                "weights of vCPUs",
                f"weights: {weights[False]} vCPUs by their own weight, {weights[True]} by that of their"
                " cgroup (alone there, a weight of their own would do nothing)",
            )
        self._weights = weights
