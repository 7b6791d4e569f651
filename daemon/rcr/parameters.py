"""Settings of the resource conflict resolver."""

from __future__ import annotations

from dataclasses import dataclass

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
    slice_imbalance_percent: int = SLICE_IMBALANCE_PERCENT
    conflict_ratio: int = CONFLICT_RATIO
    min_conflicts: int = MIN_CONFLICTS
    cooldown_periods: int = COOLDOWN_PERIODS
    max_slice_swaps: int = MAX_SLICE_SWAPS
    min_gain_percent: int = MIN_GAIN_PERCENT
    across_nodes: bool = False

    def __post_init__(self) -> None:
        least = {
            "slice_imbalance_percent": 1,
            "conflict_ratio": 1,
            "min_conflicts": 1,
            "cooldown_periods": 0,
            "max_slice_swaps": 1,
            "min_gain_percent": 1,
        }
        for name, lowest in least.items():
            value: int = getattr(self, name)
            if value < lowest:
                raise ValueError(f"rcr: {name} is {value}: give {lowest} or more")
        if self.min_gain_percent > 100:
            raise ValueError(f"rcr: min_gain_percent is {self.min_gain_percent}: give 100 or less")
