"""Fair parts of something that there is only so much of: seats, wake-up slots, adoptions in one look."""

from __future__ import annotations

from collections.abc import Sequence


def fair_parts(wanted: Sequence[int], room: int) -> list[int]:
    """What each gets who wants so many: all of it, or as much as everybody else who does not get all.

    Whoever wants more than that takes from nobody, and whoever comes later gets as much as who came first.
    """
    parts = [0] * len(wanted)
    for rank, at in enumerate(sorted(range(len(wanted)), key=wanted.__getitem__)):
        parts[at] = min(wanted[at], room // (len(wanted) - rank))
        room -= parts[at]
    return parts
