"""Who woke each vCPU, put into its counters from a source of wake-up edges."""

from __future__ import annotations

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
        shown: dict[VcpuId, _Shown] = {}
        changed: dict[VcpuId, list[tuple[VcpuId, int]]] = {}
        for who, activity in reading.threads.items():
            plain = counters.get(who)
            if plain is None:
                continue
            known = self._shown.get(who)
            if known is None or known.plain is not plain or known.news != _news(activity):
                changed[who] = []
            else:
                shown[who] = known
                counters[who] = known.full
        if changed:
            for (waker, wakee), edge in reading.edges.items():
                if wakee in changed:
                    changed[wakee].append((waker, edge.wakeups))
        for who, wakers in changed.items():
            plain, activity = counters[who], reading.threads[who]
            full = self._full(plain, activity, tuple(sorted(wakers)))
            shown[who] = _Shown(plain, _news(activity), full)
            counters[who] = full
        self._shown = shown

    def _full(self, plain: Counters, activity: Activity, wakers: Totals) -> Counters:
        woken, chain_ns = _news(activity)
        if self._edges.level is Level.EDGES:
            return plain._replace(wakers=wakers, wakeups=woken, external_wakeups=activity.external)
        return plain._replace(
            preemptions=activity.preemptions,
            wakers=wakers,
            wakeups=woken,
            external_wakeups=activity.external,
            chain_ns=chain_ns,
        )


def _news(activity: Activity) -> tuple[int, int]:
    """What tells whether a thread did anything: how often it was woken, and its time in chains."""
    return activity.sibling + activity.external + activity.timer, activity.chain_ns
