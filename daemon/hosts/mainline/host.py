"""The host for kernels as they come: counters by BPF or from /proc, slices, masks, cgroup weights."""

from __future__ import annotations

from ...bpf.edges import WakeEdges
from ...linux import procfs
from ...linux.cpus import SYSFS
from ...model import Capabilities
from ...safety.kernel import Kernel
from ..host import BY_DEFAULT, HostSettings
from ..threads.ahead import WriteAhead
from ..threads.host import ThreadsHost
from .stock import StockKernel


class Mainline(ThreadsHost):
    """A Host on a stock kernel."""

    def __init__(
        self,
        journal: WriteAhead,
        capabilities: Capabilities,
        settings: HostSettings = BY_DEFAULT,
        *,
        edges: WakeEdges | None = None,
        proc: str = procfs.PROC,
        sysfs: str = SYSFS,
        kernel: Kernel | None = None,
    ) -> None:
        interface = StockKernel(bpf=settings.bpf and proc == procfs.PROC)
        super().__init__(
            journal, capabilities, interface, settings, edges=edges, proc=proc, sysfs=sysfs, kernel=kernel
        )
