"""How soon to look again: every period where something changes, seldom where nothing is to be done.

A look costs what a period costs, whether it changes anything or not. Where all vCPUs of a workload are
equally critical it never does, and looking all the time takes 1.4 % of a core from them
(docs/measurements.md, "What looking costs").
"""

from __future__ import annotations

LOOKS = 6
"""So many looks without a wish, and the next ones are half as often. With a memory of 6.7 periods whatever
was there before them is then half forgotten."""

REST_PERIODS = 2
"""From one look to the next where all is calm. With 4, the policy got 62 % of the oracle's gain in a load
whose background begins after a calm second, with 2 it got 69 % in another run (docs/measurements.md, "What
looking costs")."""


def periods_to_rest(calm: int) -> int:
    """After how many periods to look again, after so many looks without a wish.

    >>> [periods_to_rest(calm) for calm in (0, 5, 6)]
    [1, 1, 2]
    """
    return REST_PERIODS if calm >= LOOKS else 1


def calmer(calm: int, *, stirred: bool) -> int:
    """The number of looks without a wish after one more, which was one unless it `stirred` something."""
    return 0 if stirred else min(calm + 1, LOOKS)
