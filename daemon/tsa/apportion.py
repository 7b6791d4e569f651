"""Whole shares of a whole total: proportional, within bounds, and adding up exactly."""

from __future__ import annotations

from collections.abc import Sequence


def apportion(weights: Sequence[int], total: int, low: int, high: int) -> list[int]:
    """`total` in proportion to the weights, every part within [low, high], the sum exact.

    Parts outside the bounds are pinned to them, and the rest is divided again among the others; of the two
    bounds, the one that is violated more is served first, so that no part is pinned that would have come back
    inside. Rounding is by largest remainder; ties go to the earlier row. The weights must be
    positive, and the total within [low, high] × their number.

    >>> apportion([1024, 1024, 1024], 3072 - 2, 128, 8192)
    [1024, 1023, 1023]
    >>> apportion([130, 1000], 900, 128, 8192)
    [128, 772]
    """
    parts = [0] * len(weights)
    free: Sequence[int] = range(len(weights))
    for _ in weights:
        mine = [weights[row] for row in free]
        mass = sum(mine)
        # Everything times `mass`, so that the comparisons are exact.
        if not mine or (total * min(mine) >= low * mass and total * max(mine) <= high * mass):
            break
        below = [row for row in free if total * weights[row] < low * mass]
        above = [row for row in free if total * weights[row] > high * mass]
        lacking = low * mass * len(below) - total * sum([weights[row] for row in below])
        spare = total * sum([weights[row] for row in above]) - high * mass * len(above)
        if lacking >= spare:
            total -= _pin(parts, below, low)
        if spare >= lacking:
            total -= _pin(parts, above, high)
        free = [row for row in free if not parts[row]]
    for row, part in zip(free, _by_largest_remainder([weights[row] for row in free], total), strict=True):
        parts[row] = part
    return parts


def _pin(parts: list[int], rows: Sequence[int], bound: int) -> int:
    """Gives the rows just the bound; returns what that takes from the total."""
    for row in rows:
        parts[row] = bound
    return bound * len(rows)


def _by_largest_remainder(weights: Sequence[int], total: int) -> list[int]:
    """`total` in proportion to the weights, in whole numbers that add up."""
    mass = sum(weights)
    parts = [total * weight // mass for weight in weights]
    left = total - sum(parts)
    if left:
        remainders = [total * weight % mass for weight in weights]
        for row in sorted(range(len(weights)), key=remainders.__getitem__, reverse=True)[:left]:
            parts[row] += 1
    return parts
