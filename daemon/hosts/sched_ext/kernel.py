"""A kernel that runs our scheduler: attended, and written to in words."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import ExitStack, suppress

from ...bpf.edges import WakeEdges
from ...bpf.extent import Extent
from ...bpf.libbpf import BpfUnavailable
from ...bpf.scx import Options, Scheduler, no_vms, options
from ...bpf.wake_edges import BpfEdges, open_edges
from ...knobs.knob import Write
from ...linux.printable import printable
from ...model import Counters, Level, VcpuId
from ..host import HostSettings
from ..mainline.stock import StockKernel
from ..threads.adopt import Adoption
from ..threads.ahead import WriteAhead
from ..threads.interface import Adopts
from ..threads.looks import Looks
from ..threads.notices import Notices
from ..threads.thread import ManagedThread
from .adopt import ExtAdoption
from .limits import LimitWatch
from .rcu import rcu_first

FRESH_LOOKS = 10
"""For so many times the time between two looks the scheduler goes by our words. After that it judges alone,
so that a daemon that hangs does no lasting harm (docs/decisions/0051-sched-ext-host.md)."""

LEAST_FRESH_NS, MOST_FRESH_NS = 2_000_000_000, 20_000_000_000
"""At least so long: after looks 80 ms apart the next one may come 1.6 s later (budget.py). And at most: looks
are hours apart on a host that was suspended."""


def fresh_until_ns(clock_ns: int, looked_ns: int) -> int:
    """Until when our words count that are looked after now, and before that were then."""
    return clock_ns + min(MOST_FRESH_NS, max(LEAST_FRESH_NS, FRESH_LOOKS * (clock_ns - looked_ns)))


class ExtKernel:
    """See KernelInterface. Raises BpfUnavailable when made where the scheduler cannot be loaded."""

    def __init__(self, settings: HostSettings) -> None:
        self._options = options(settings.vm_level)
        self._partial = settings.partial
        self._stock = StockKernel(bpf=settings.bpf)
        self._notices = Notices()
        if lacking := no_vms(settings.vm_level):
            self._notices.say("groups that are no VMs", printable(lacking))
        self._switches = settings.partial and not settings.dry_run
        self._loaded = ExitStack()
        try:
            self._scheduler, self.edges = _entered(self._options, settings)
        except BaseException:
            self._stock.close()
            raise
        self._ended = False
        self._attended_ns = 0
        self._limits = LimitWatch()

    def load(self, journal: WriteAhead) -> None:
        """From now on it schedules. Raises BpfUnavailable where it cannot."""
        if self._scheduler is None:
            return
        with ExitStack() as loaded:
            if not self._partial:
                loaded.enter_context(rcu_first(journal))
            loaded.callback(self._scheduler.end)
            self._scheduler.begin()
            self._loaded = loaded.pop_all()

    def adoption(self, stock: Adoption) -> Adopts:
        """Threads get the scheduler's knobs on top."""
        return ExtAdoption(stock, self._options.slice_ns, lambda: self._ended, switches=self._switches)

    def sampler(self, threads: Sequence[ManagedThread], counters: dict[VcpuId, Counters]) -> Looks:
        """That of a stock kernel, whose counters do not depend on who schedules."""
        return self._stock.sampler(threads, counters)

    def write_together(self, writes: Sequence[Write]) -> Collection[Write]:
        """See KernelInterface: a word at a time."""
        return self._stock.write_together(writes)

    def attend(self, clock_ns: int) -> bool:
        """Once a look: our words count for some more of these. False, once, when the scheduler has gone: the
        kernel has put it out, or somebody has set a CPU limit."""
        if self._scheduler is None or self._ended:
            return True
        if (limit := self._limits.found(clock_ns)) is not None:
            self._leave(f"{limit}, which only the kernel's own keeps")
            return False
        if (why := self._scheduler.ended()) is not None:
            self._leave(why)
            return False
        self._scheduler.attend(fresh_until_ns(clock_ns, self._attended_ns or clock_ns))
        self._attended_ns = clock_ns
        return True

    def notices(self) -> tuple[str, ...]:
        """What an operator should hear, each once."""
        return (*self._stock.notices(), *self._notices.take())

    def close(self) -> None:
        """Give the kernel its own scheduler back, and let all descriptors go."""
        self._loaded.close()
        if self._scheduler is not None:
            self._scheduler.close()
        self._stock.close()

    def _leave(self, why: str) -> None:
        self._loaded.close()
        self._ended = True
        if isinstance(self.edges, BpfEdges):
            with suppress(BpfUnavailable, OSError):  # whoever asks for it again hears why
                self.edges.lose_scheduler()
        self._notices.say(
            "our scheduler",
            f"our scheduler was put out, and the kernel's own schedules until dasec is started again:"
            f" {printable(why)}",
        )


def _entered(chosen: Options, settings: HostSettings) -> tuple[Scheduler | None, WakeEdges | None]:
    """Our scheduler in the kernel, if it is to schedule anybody, and who counts wake-ups: itself where it has
    all threads and the kernel lets it, else by tracing."""
    extent = Extent(settings.edges if settings.bpf else Level.NONE)
    if settings.dry_run or settings.partial or extent.level is Level.NONE:
        scheduler = None if settings.dry_run else Scheduler(chosen, partial=settings.partial)
        return scheduler, None if extent.level is Level.NONE else open_edges(extent)
    scheduler = None
    try:
        scheduler = Scheduler(chosen, extent=extent)
        return scheduler, BpfEdges(extent, scheduler)
    except BpfUnavailable:
        return scheduler or Scheduler(chosen), open_edges(extent)
