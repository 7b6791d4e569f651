"""Under load: what guests count of who woke whom, and what the daemon records of it meanwhile."""

from __future__ import annotations

import time
from contextlib import closing

from guests.bare.client import Client, VcpuStatistics
from guests.bare.machine import Bare

from .edges import Agreement, agreement, counted, recorded
from .measure import Stage, controlled, drive
from .situation import VCPUS
from .wish import CRITICAL, Wish

SETTLE_S = 1.0
"""So that the record has a period after the last wake-up; a dozen periods."""


def compared(stage: Stage, wish: Wish) -> list[Agreement]:
    """One for each guest. The daemon runs before the first wake-up that counts, and after the last."""
    record = stage.directory / "edges.jsonl"
    with controlled(stage, wish, CRITICAL, record):
        before = [_statistics(one) for one in stage.guests]
        drive(stage, wish)
        after = [_statistics(one) for one in stage.guests]
        time.sleep(SETTLE_S)
    return [
        agreement(counted(*looks), recorded(record, one.vcpu_threads()))
        for one, *looks in zip(stage.guests, before, after, strict=True)
    ]


def _statistics(guest: Bare) -> list[VcpuStatistics]:
    with closing(Client(guest.address)) as client:
        return [client.statistics(vcpu) for vcpu in range(VCPUS)]
