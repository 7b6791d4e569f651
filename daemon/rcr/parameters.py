"""Settings of the resource conflict resolver."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from ..settings import Range, check

SLICE_IMBALANCE_PERCENT = 10
"""Swap when the largest sum of slices exceeds the smallest by more than this (§4.2: "by 10%")."""

CONFLICT_RATIO = 2
"""Swap when the most conflicts of a core exceed the fewest by more than this factor (§4.2: "2x")."""

MIN_CONFLICTS = 4
"""Fewer conflicts on a core are no reason to move anybody: one in 20 ms of a period of 80 ms. Ours; the
ratio alone would be infinite at 1 against 0."""

COOLDOWN_PERIODS = 12
"""How long a vCPU that was moved stays: about 1 s. Ours, for the paper's "conservative way" (§4.2); a swap
costs two writes and cold caches (docs/measurements.md, "Cost of writing")."""

MAX_SLICE_SWAPS = 2
"""Swaps between two cores for their slices in one period. Ours: the paper swaps "some" (§4.2)."""

MIN_GAIN_PERCENT = 10
"""A swap for slices must shrink the difference by at least this part. Ours: less is not worth two moves."""


@dataclass(frozen=True, slots=True)
class RcrParameters:
    """Settings of the resource conflict resolver; `across_nodes`: may vCPUs change their NUMA node?"""

    enabled: bool = True
    slice_imbalance_percent: Annotated[int, Range(1, 10_000)] = SLICE_IMBALANCE_PERCENT
    conflict_ratio: Annotated[int, Range(1, 1000)] = CONFLICT_RATIO
    min_conflicts: Annotated[int, Range(1, 10**6, "a count from 1")] = MIN_CONFLICTS
    cooldown_periods: Annotated[int, Range(0, 10**6, "a count from 0")] = COOLDOWN_PERIODS
    max_slice_swaps: Annotated[int, Range(1, 1000, "a count from 1 to 1000")] = MAX_SLICE_SWAPS
    min_gain_percent: Annotated[int, Range(1, 100)] = MIN_GAIN_PERCENT
    across_nodes: bool = False

    def __post_init__(self) -> None:
        check(self)
