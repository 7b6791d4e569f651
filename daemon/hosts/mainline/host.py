"""The host for kernels as they come: counters by BPF or from /proc, slices, masks, cgroup weights."""

from __future__ import annotations

from ...bpf.edges import WakeEdges
from ...linux import procfs
from ...linux.cpus import SYSFS
from ...model import Capabilities, Core
from ...safety.kernel import Kernel
from ..host import MOST_THREADS
from ..threads.ahead import WriteAhead
from ..threads.host import ThreadsHost
from ..threads.thread import OnForeignWrite
from .stock import StockKernel


class Mainline(ThreadsHost):
    """A Host on a stock kernel."""

    def __init__(
        self,
        journal: WriteAhead,
        capabilities: Capabilities,
        *,
        cpus: frozenset[Core] | None = None,
        own_groups: bool = False,
        on_foreign_write: OnForeignWrite = OnForeignWrite.YIELD,
        dry_run: bool = False,
        bpf: bool = True,
        edges: WakeEdges | None = None,
        proc: str = procfs.PROC,
        sysfs: str = SYSFS,
        kernel: Kernel | None = None,
        most: int = MOST_THREADS,
    ) -> None:
        super().__init__(
            journal,
            capabilities,
            StockKernel(bpf=bpf and proc == procfs.PROC),
            cpus=cpus,
            own_groups=own_groups,
            on_foreign_write=on_foreign_write,
            dry_run=dry_run,
            edges=edges,
            proc=proc,
            sysfs=sysfs,
            kernel=kernel,
            most=most,
        )
