"""How much of a quota a group should save up, so that what its threads overrun does not stop it.

The kernel charges CPU time at ticks and switches: each thread that runs may overrun by up to a jiffy, which
the next period's quota pays. With a jiffy for each thread saved up, a quota that suffices stops nobody.
"""

from __future__ import annotations

from .rates import Cap


def burst_us(cap: Cap, threads: int, jiffy_us: int) -> int:
    """For a group with this quota and so many threads. The kernel takes no more than the quota.

    >>> burst_us(Cap(200_000, 100_000), 4, 4_000), burst_us(Cap(10_000, 100_000), 4, 4_000)
    (16000, 10000)
    """
    return min(cap.quota_us, threads * jiffy_us)
