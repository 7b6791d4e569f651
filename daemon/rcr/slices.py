"""Swaps for slices: evens out the sums of slices of the fullest and the emptiest core (§4.2)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..model import Core
from .layout import Layout, Seat, Swap
from .parameters import RcrParameters


class Gap(NamedTuple):
    """The core with the largest sum of slices, the one with the smallest, and the difference."""

    full: Core
    empty: Core
    size_ns: int


def balance(layout: Layout, reach: Sequence[Core], parameters: RcrParameters) -> None:
    """Swaps between the fullest and the emptiest of the occupied cores in `reach`, as few as suffice."""
    occupied = [core for core in reach if core in layout.sums_ns]
    gap = imbalance(layout, occupied, parameters)
    if gap is None:
        return
    pair = sorted((gap.full, gap.empty))
    for _ in range(parameters.max_slice_swaps):
        swap = _best_swap(layout, gap, reach, parameters)
        if swap is None:
            return
        layout.swap(swap)
        gap = imbalance(layout, pair, parameters)
        if gap is None:
            return


def imbalance(layout: Layout, cores: Sequence[Core], parameters: RcrParameters) -> Gap | None:
    """The two cores furthest apart, if that is too far; ties go to the first."""
    sums = [layout.sums_ns[core] for core in cores]
    if not sums:
        return None
    largest = max(sums)
    full = cores[sums.index(largest)]
    empty = min(layout.apart(full, cores), key=layout.sums_ns.__getitem__)
    smallest = layout.sums_ns[empty]
    if 100 * largest <= (100 + parameters.slice_imbalance_percent) * smallest:
        return None
    return Gap(full, empty, largest - smallest)


def _best_swap(layout: Layout, gap: Gap, reach: Sequence[Core], parameters: RcrParameters) -> Swap | None:
    """The swap that leaves the smallest difference, or None if none shrinks it enough.

    Moving d more out of the full core than into it leaves |gap − 2d|; so each vCPU of the full core looks for
    partners around its own slice − gap / 2, outwards from there, and only among those that would be better
    than the best so far. Both sides are in order of slice, so that the starting points only move up; of equal
    slices the lower VcpuId comes first, whichever way.
    """
    limit = gap.size_ns * (100 - parameters.min_gain_percent) // 100 + 1
    if gap.size_ns - 2 * _widest_ns(layout, gap) >= limit:
        return None
    giving = _by_slice(layout.movable(gap.full, gap.empty))
    taking = _by_slice(layout.movable(gap.empty, gap.full))
    downwards = sorted(taking, key=lambda seat: (-seat.slice_ns, seat.vcpu.id))
    best: Swap | None = None
    seen = set()
    start = 0
    for one in giving:
        wanted_ns = one.slice_ns - gap.size_ns // 2
        start = next(
            (at for at in range(start, len(taking)) if taking[at].slice_ns >= wanted_ns), len(taking)
        )
        alike = (one.slice_ns, one.group, one.vcpu.allowed)
        if alike in seen:
            continue
        seen.add(alike)
        for side, first in ((taking, start), (downwards, len(taking) - start)):
            for at in range(first, len(side)):
                other = side[at]
                left = abs(gap.size_ns - 2 * (one.slice_ns - other.slice_ns))
                if left >= limit:
                    break
                if layout.may_swap(one, gap.full, other, gap.empty, reach):
                    limit = left
                    best = _swap(one, other, gap, left)
                    break
    return best


def _widest_ns(layout: Layout, gap: Gap) -> int:
    """The most by which a slice on the full core exceeds one on the empty core, whoever may be moved.

    Slices of one length, however unequal the cores, are the common case: there is nothing to look for.
    """
    return max(layout.slices_ns_on(gap.full)) - min(layout.slices_ns_on(gap.empty))


def _by_slice(seats: Sequence[Seat]) -> list[Seat]:
    return sorted(seats, key=lambda seat: (seat.slice_ns, seat.vcpu.id))


def _swap(one: Seat, other: Seat, gap: Gap, left_ns: int) -> Swap:
    seen = (
        ("core_from", gap.full),
        ("core_to", gap.empty),
        ("gap_ns", gap.size_ns),
        ("gap_left_ns", left_ns),
    )
    return Swap(one, gap.empty, other, gap.full, "rcr.slices", seen)
