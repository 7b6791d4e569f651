"""Settings of the time-slice allocator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from ..entitlement import TICK_NS
from ..settings import Range, check

STEP_PERCENT = 10
"""How much a hungry vCPU's weight grows in a period (§4.2: "increases the weight by 10%")."""

MAX_WEIGHT_SPAN = 8
"""Weights stay within [1/8, 8] × the mean. The paper names no bounds; this range is still exact in the
kernel's integer arithmetic and covers the 7:1 that the best known weights needed (docs/measurements.md)."""

_SPAN = f"how far a weight may be from the mean, a factor from 2 to {MAX_WEIGHT_SPAN}"


@dataclass(frozen=True, slots=True)
class TsaParameters:
    """Settings of the time-slice allocator; `tick_ns` is the tolerance in judging a slice exhausted."""

    enabled: bool = True
    step_percent: Annotated[int, Range(1, 100)] = STEP_PERCENT
    weight_span: Annotated[int, Range(2, MAX_WEIGHT_SPAN, _SPAN)] = MAX_WEIGHT_SPAN
    tick_ns: Annotated[int, Range(0, 100_000, unit="us")] = TICK_NS

    def __post_init__(self) -> None:
        check(self)
