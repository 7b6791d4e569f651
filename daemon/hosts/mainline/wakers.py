"""Who woke each vCPU, put into its counters from a source of wake-up edges."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from ...edges.reading import Activity, WakeEdges
from ...model import Counters, Level, VcpuId, Workload

Totals = tuple[tuple[VcpuId, int], ...]


class _Shown(NamedTuple):
    """What a thread's counters were made of, and those counters."""

    plain: Counters
    news: tuple[int, int]
    full: Counters


class Wakers:
    """Keeps a source following the managed threads, and adds what it counted."""

    def __init__(self, edges: WakeEdges) -> None:
        self._edges = edges
        self._numbers: dict[str, int] = {}
        self._shown: dict[VcpuId, _Shown] = {}

    def follow(self, workloads: Sequence[Workload]) -> None:
        """These are the workloads now. A name keeps its number, so that who stays is not counted anew."""
        workload_of = {
            vcpu.id: self._numbers.setdefault(workload.name, len(self._numbers))
            for workload in workloads
            for vcpu in workload.vcpus
        }
        self._edges.follow(workload_of)

    def add_to(self, counters: dict[VcpuId, Counters]) -> None:
        """Fill in who woke whom, how often each woke, and (level full) chains and preemptions.

        Nothing new about a thread gives the very object of the last time: that is how a period
        knows a thread that slept through.
        """
        if self._edges.level is Level.NONE:
            return
        reading = self._edges.read()
        wakers: dict[VcpuId, list[tuple[VcpuId, int]]] = defaultdict(list)
        for (waker, wakee), edge in reading.edges.items():
            wakers[wakee].append((waker, edge.wakeups))
        shown: dict[VcpuId, _Shown] = {}
        for who, activity in reading.threads.items():
            plain = counters.get(who)
            if plain is None:
                continue
            woken = activity.sibling + activity.external + activity.timer
            news = (woken, activity.chain_ns)
            known = self._shown.get(who)
            if known is None or known.plain is not plain or known.news != news:
                full = self._full(plain, activity, woken, tuple(sorted(wakers[who])))
                known = _Shown(plain, news, full)
            shown[who] = known
            counters[who] = known.full
        self._shown = shown

    def _full(self, plain: Counters, activity: Activity, woken: int, wakers: Totals) -> Counters:
        if self._edges.level is Level.EDGES:
            return plain._replace(wakers=wakers, wakeups=woken, external_wakeups=activity.external)
        return plain._replace(
            preemptions=activity.preemptions,
            wakers=wakers,
            wakeups=woken,
            external_wakeups=activity.external,
            chain_ns=activity.chain_ns,
        )
