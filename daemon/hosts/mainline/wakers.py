"""Who woke each vCPU, put into its counters from a source of wake-up edges."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from ...edges.reading import Level, WakeEdges
from ...model import Counters, VcpuId, Workload

Totals = tuple[tuple[VcpuId, int], ...]


class Wakers:
    """Keeps a source following the managed threads, and adds what it counted."""

    def __init__(self, edges: WakeEdges) -> None:
        self._edges = edges
        self._numbers: dict[str, int] = {}
        self._shown: dict[VcpuId, tuple[Counters, Counters]] = {}

    def follow(self, workloads: Sequence[Workload]) -> None:
        """These are the workloads now. A name keeps its number, so that who stays is not counted anew."""
        workload_of = {
            vcpu.id: self._numbers.setdefault(workload.name, len(self._numbers))
            for workload in workloads
            for vcpu in workload.vcpus
        }
        self._edges.follow(workload_of)

    def add_to(self, counters: dict[VcpuId, Counters]) -> None:
        """Fill in `wakers` and, where the source counts them, `preemptions`.

        Nothing new about a thread gives the very object of the last time: that is how a period
        knows a thread that slept through.
        """
        if self._edges.level is Level.NONE:
            return
        reading = self._edges.read()
        wakers: dict[VcpuId, list[tuple[VcpuId, int]]] = defaultdict(list)
        for (waker, wakee), edge in reading.edges.items():
            wakers[wakee].append((waker, edge.wakeups))
        shown: dict[VcpuId, tuple[Counters, Counters]] = {}
        for who, activity in reading.threads.items():
            plain = counters.get(who)
            if plain is None:
                continue
            preemptions = activity.preemptions if self._edges.level is Level.FULL else plain.preemptions
            full = plain._replace(wakers=tuple(sorted(wakers[who])), preemptions=preemptions)
            then = self._shown.get(who)
            if then is not None and then[0] is plain and then[1] == full:
                full = then[1]
            shown[who] = plain, full
            counters[who] = full
        self._shown = shown
