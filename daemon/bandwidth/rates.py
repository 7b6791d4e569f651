"""CPU time as a rate, in millionths of one core, and as the kernel's pair of quota and period."""

from __future__ import annotations

from typing import NamedTuple

from ..model import CORE_PPM


class Cap(NamedTuple):
    """So much CPU time in each period of so long."""

    quota_us: int
    period_us: int


PERIODS_US = (10_000, 20_000, 25_000, 50_000, 100_000)
"""Of a cap: short, because a vCPU that stops may hold a lock of the guest. With 16 of 10 ms for the
background the critical vCPU's p99 was 6.6 ms, with 160 of 100 ms 23.7 (docs/measurements.md, "Limits and
caps"). Each is a part of 100 ms, the kernel's default: of others one more may fall into a limit's period."""

LEAST_US = 2_000
"""The least quota of a cap, twice the kernel's (min_cfs_quota_period): small rates get a longer period."""

LEAST_PPM = LEAST_US * CORE_PPM // PERIODS_US[-1]
"""The smallest cap."""


def rate_ppm(cap: Cap) -> int:
    """How much of a core that is.

    >>> rate_ppm(Cap(50_000, 100_000))
    500000
    """
    return cap.quota_us * CORE_PPM // cap.period_us


def used_ppm(used_ns: int, length_ns: int) -> int:
    """So much CPU time in so long a time."""
    return used_ns * CORE_PPM // length_ns


def cap_of(ppm: int) -> Cap:
    """The cap with the shortest period that a rate can have; never above it, where it is LEAST_PPM or more.

    >>> cap_of(533_333), cap_of(50_000)
    (Cap(quota_us=5333, period_us=10000), Cap(quota_us=2500, period_us=50000))
    """
    for period_us in PERIODS_US:
        quota_us = ppm * period_us // CORE_PPM
        if quota_us >= LEAST_US:
            return Cap(quota_us, period_us)
    return Cap(LEAST_US, PERIODS_US[-1])
