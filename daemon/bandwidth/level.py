"""One cap for all in the background: the level to which what is left of a limit fills their demands."""

from __future__ import annotations

from collections.abc import Sequence


def level_ppm(demands_ppm: Sequence[int], budget_ppm: int) -> int:
    """The highest cap with which they use no more than the budget together: who wants less than it leaves the
    rest to the others.

    >>> level_ppm([1_000_000, 1_000_000, 100_000], 900_000)
    400000
    """
    left_ppm, level = budget_ppm, 0
    for at, demand_ppm in enumerate(sorted(demands_ppm)):
        level = left_ppm // (len(demands_ppm) - at)
        if demand_ppm > level:
            return level
        left_ppm -= demand_ppm
    return max(level, budget_ppm)
