"""Swaps for latencies: parts the low-latency vCPUs that get into each other's way (§4.2)."""

from __future__ import annotations

from collections.abc import Sequence

from ..entitlement import Standing
from ..model import Core
from .layout import Layout, Seat, Swap
from .parameters import RcrParameters


def highest_low_ns(latencies_ns: Sequence[int]) -> int:
    """The latency up to which a vCPU counts as low; −1 if all have the same, so that nobody does.

    Low is below the median; where the median is the smallest value, at the median. Of an even number of
    latencies, the median is the upper of the two in the middle.

    >>> highest_low_ns([1, 2, 3, 4])
    2
    >>> highest_low_ns([1, 1, 1, 4])
    1
    >>> highest_low_ns([4, 4])
    -1
    """
    ordered = sorted(latencies_ns)
    if not ordered or ordered[0] == ordered[-1]:
        return -1
    median = ordered[len(ordered) // 2]
    return ordered[0] if median == ordered[0] else median - 1


def separate(
    layout: Layout,
    standings: Sequence[Standing],
    reaches: Sequence[Sequence[Core]],
    parameters: RcrParameters,
) -> None:
    """Swaps low for high vCPUs between the cores with the most and the fewest conflicts, in each reach."""
    if _all_conflicts(standings) < parameters.min_conflicts:
        return
    low_ns = highest_low_ns(layout.all_latencies_ns())
    conflicts = layout.conflicts(low_ns)
    for reach in reaches:
        occupied = [core for core in reach if core in layout.sums_ns]
        counts = {core: conflicts.get(core, 0) for core in occupied}
        if not counts:
            continue
        most = max(occupied, key=counts.__getitem__)
        fewest = min(layout.apart(most, occupied), key=counts.__getitem__)
        many, few = counts[most], counts[fewest]
        if many >= parameters.min_conflicts and many > parameters.conflict_ratio * few:
            seen = (("core_from", most), ("core_to", fewest), ("conflicts", many), ("conflicts_there", few))
            _exchange(layout, most, fewest, reach, low_ns, seen)


def _all_conflicts(standings: Sequence[Standing]) -> int:
    return sum(
        [used.conflicts for standing in standings for row in standing.active if (used := standing.usage[row])]
    )


def _exchange(
    layout: Layout,
    most: Core,
    fewest: Core,
    reach: Sequence[Core],
    low_ns: int,
    seen: tuple[tuple[str, int], ...],
) -> None:
    """Swaps half of the low vCPUs of the one core with as many high ones of the other."""
    wanted = sum(0 <= _latency_ns(layout, seat) <= low_ns for seat in layout.on(most)) // 2
    leaving = [seat for seat in layout.movable(most, fewest) if 0 <= _latency_ns(layout, seat) <= low_ns]
    coming = [seat for seat in layout.movable(fewest, most) if _latency_ns(layout, seat) > low_ns]
    leaving.sort(key=lambda seat: (-_conflicts(layout, seat), seat.vcpu.id))
    coming.sort(key=lambda seat: (-_latency_ns(layout, seat), seat.vcpu.id))
    for one in leaving:
        if not wanted:
            return
        other = next((seat for seat in coming if layout.may_swap(one, most, seat, fewest, reach)), None)
        if other is not None:
            layout.swap(Swap(one, fewest, other, most, "rcr.latencies", seen))
            coming.remove(other)
            wanted -= 1


def _latency_ns(layout: Layout, seat: Seat) -> int:
    """The latency after RLA; −1 for a vCPU without one, which is neither low nor high."""
    latency_ns = layout.latency_ns(seat.group, seat.row)
    return -1 if latency_ns is None else latency_ns


def _conflicts(layout: Layout, seat: Seat) -> int:
    used = layout.usage(seat)
    return used.conflicts if used else 0
