"""Settings of the rescheduling latency adjuster."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from ..settings import Range, check

STEP_PERCENT = 10
"""How much a latency shrinks in a period (§4.2: "decreases […] by 10%")."""

FLOOR_NS = 1_400_000
"""The paper's "minimal value allowed by the system" (§4.2): EEVDF's default slice on the machine that we
measured; shorter ones cut bursts (docs/measurements.md, "Slice as rescheduling latency")."""

CEILING_NS = 12_000_000
"""Longer slices raised p99 to 3–8 times the default in mixed loads (docs/measurements.md, same heading)."""

START_NS = 4_000_000
"""Inside the range, so that a vCPU can go both ways (docs/measurements.md, same heading)."""

SLICE_US = Range(100, 100_000, "from 100 to 100000 us, as the kernel takes them", "us")


@dataclass(frozen=True, slots=True)
class RlaParameters:
    """Settings of the rescheduling latency adjuster; `respect_burst`: never cut below the average burst."""

    enabled: bool = True
    step_percent: Annotated[int, Range(1, 50)] = STEP_PERCENT
    floor_ns: Annotated[int, SLICE_US] = FLOOR_NS
    ceiling_ns: Annotated[int, SLICE_US] = CEILING_NS
    start_ns: Annotated[int, SLICE_US] = START_NS
    respect_burst: bool = True

    def __post_init__(self) -> None:
        check(self)
        if not self.floor_ns <= self.start_ns <= self.ceiling_ns:
            raise ValueError(
                f"rla: start_us {self.start_ns // 1000} is not between floor_us {self.floor_ns // 1000}"
                f" and ceiling_us {self.ceiling_ns // 1000}"
            )
