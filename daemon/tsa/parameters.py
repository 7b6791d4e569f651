"""Settings of the time-slice allocator."""

from __future__ import annotations

from dataclasses import dataclass

from ..entitlement import TICK_NS

STEP_PERCENT = 10
"""How much a hungry vCPU's weight grows in a period (§4.2: "increases the weight by 10%")."""

MAX_WEIGHT_SPAN = 8
"""Weights stay within [1/8, 8] × the mean. The paper names no bounds; this range is still exact in the
kernel's integer arithmetic and covers the 7:1 that the best known weights needed (docs/measurements.md)."""


@dataclass(frozen=True, slots=True)
class TsaParameters:
    """Settings of the time-slice allocator; `tick_ns` is the tolerance in judging a slice exhausted."""

    enabled: bool = True
    step_percent: int = STEP_PERCENT
    weight_span: int = MAX_WEIGHT_SPAN
    tick_ns: int = TICK_NS

    def __post_init__(self) -> None:
        if not 1 <= self.step_percent <= 100:
            raise ValueError(f"tsa: step_percent is {self.step_percent}: give 1 to 100")
        if not 2 <= self.weight_span <= MAX_WEIGHT_SPAN:
            raise ValueError(f"tsa: weight_span is {self.weight_span}: give 2 to {MAX_WEIGHT_SPAN}")
        if self.tick_ns < 0:
            raise ValueError(f"tsa: tick_ns is {self.tick_ns}: give 0 or more")
