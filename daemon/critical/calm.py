"""How soon to look again: every period where something changes, seldom where nothing is to be done.

A look costs what a period costs, whether it changes anything or not. Where all vCPUs of a workload are
equally critical it never does, and looking all the time takes 1.4 % of a core from them
(docs/measurements.md, "What looking costs").
"""

from __future__ import annotations

from typing import NamedTuple

LOOKS = 6
"""So many looks without a wish, and the next ones are half as often. With a memory of 6.7 periods whatever
was there before them is then half forgotten."""

REST_PERIODS = 2
"""From one look to the next where all is calm. With 4, the policy got 62 % of the oracle's gain in a load
whose background begins after a calm second, with 2 it got 69 % in another run (docs/measurements.md, "What
looking costs")."""

PAUSE_LOOKS = 120
"""So many looks without a wish, and the wake-up monitor is detached between them: after about 19 s, since the
later ones rest. A step of load after a pause is answered later, so one that comes every few seconds should
not meet any."""

PAUSE_PERIODS = 12
"""From a look to the next one while nobody is watched. With the looks that follow it a step of load is still
answered within 25 periods (tests/unit/test_critical.py)."""

LOOKS_BETWEEN = 2
"""Looks between two pauses. One of them alone sees a seventh of what a memory of 6.7 periods holds."""


class Rest(NamedTuple):
    """After how many periods to look again, and whether nobody is watched until then."""

    periods: int
    unwatched: bool = False


def rest_after(calm: int) -> Rest:
    """After so many looks without a wish.

    >>> [rest_after(calm).periods for calm in (0, 5, 6, 119, 120)]
    [1, 1, 2, 2, 12]
    """
    if calm >= PAUSE_LOOKS:
        return Rest(PAUSE_PERIODS, unwatched=True)
    return Rest(REST_PERIODS if calm >= LOOKS else 1)


def calmer(calm: int, *, stirred: bool, lowered: bool) -> int:
    """The number of looks without a wish after one more, which was one unless it `stirred` something. Where a
    vCPU is `lowered` beside other workloads' it is looked at as long as that lasts."""
    if stirred:
        return 0
    if lowered:
        return min(calm + 1, PAUSE_LOOKS - 1)
    return calm + 1 if calm < PAUSE_LOOKS else PAUSE_LOOKS - LOOKS_BETWEEN + 1
