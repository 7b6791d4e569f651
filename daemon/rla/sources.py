"""How much of a step each source vCPU gets: the weighing of the wake-ups (§4.2)."""

from __future__ import annotations

from collections.abc import Iterable

from ..model import Usage, VcpuId
from .steps import WHOLE


def parts_of_sources(stuck: Iterable[Usage]) -> dict[VcpuId, int]:
    """For each source of the stuck vCPUs' wake-ups, its part of one step down, in millionths.

    Every stuck vCPU hands out one whole step, divided among its sources by count. What a source is handed by
    several adds up, to a whole step at most (docs/decisions/0010-rla-sources.md).
    """
    parts: dict[VcpuId, int] = {}
    for used in stuck:
        wakeups = sum([count for _, count in used.wakers])
        for source, count in used.wakers:
            parts[source] = min(WHOLE, parts.get(source, 0) + count * WHOLE // wakeups)
    return parts
