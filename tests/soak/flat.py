"""Is a series flat? What a line through its second half gains from there to the end must be small."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import linear_regression, mean
from typing import NamedTuple

LEAST_S = 60.0
"""A shorter second half says nothing: caches fill, and the interpreter keeps what it has once had."""

MEMORY_KIB = 2048
"""What memory may gain over the second half, however long it is: 0.1 KiB a period of 80 ms, kept, would be
4.4 MiB in an hour."""

DESCRIPTORS = 12
"""The same of descriptors: two for each of a few threads more at the end than in the middle."""


class Sample(NamedTuple):
    """The daemon at one time."""

    at_s: float
    memory_kib: int
    descriptors: int


def gain(times_s: Sequence[float], values: Sequence[int]) -> float:
    """By how much a line through these rises from the first to the last."""
    return linear_regression(times_s, values).slope * (times_s[-1] - times_s[0])


def second_half(samples: Sequence[Sample]) -> Sequence[Sample]:
    """Of the time, not of the number."""
    middle_s = (samples[0].at_s + samples[-1].at_s) / 2
    return [one for one in samples if one.at_s >= middle_s]


def growth(samples: Sequence[Sample]) -> tuple[float, float] | None:
    """What memory (KiB) and descriptors gained over the second half; None if it was too short to tell."""
    late = second_half(samples)
    if late[-1].at_s - late[0].at_s < LEAST_S:
        return None
    times_s = [one.at_s for one in late]
    return gain(times_s, [one.memory_kib for one in late]), gain(times_s, [one.descriptors for one in late])


def faults(samples: Sequence[Sample]) -> list[str]:
    """What is not flat, in words."""
    grown = growth(samples)
    if grown is None:
        return []
    late = second_half(samples)
    found = []
    for what, gained, bound, values in (
        ("memory (KiB)", grown[0], MEMORY_KIB, [one.memory_kib for one in late]),
        ("descriptors", grown[1], DESCRIPTORS, [one.descriptors for one in late]),
    ):
        if gained > bound:
            found.append(f"{what}: {gained:.0f} more over the second half (mean {mean(values):.0f})")
    return found
