"""Settings of the rescheduling latency adjuster."""

from __future__ import annotations

from dataclasses import dataclass

STEP_PERCENT = 10
"""How much a latency shrinks in a period (§4.2: "decreases […] by 10%")."""

FLOOR_NS = 1_400_000
"""The paper's "minimal value allowed by the system" (§4.2): EEVDF's default slice on the machine that we
measured; shorter ones cut bursts (docs/measurements.md, "Slice as rescheduling latency")."""

CEILING_NS = 12_000_000
"""Longer slices raised p99 to 3–8 times the default in mixed loads (docs/measurements.md, same heading)."""

START_NS = 4_000_000
"""Inside the range, so that a vCPU can go both ways (docs/measurements.md, same heading)."""


@dataclass(frozen=True, slots=True)
class RlaParameters:
    """Settings of the rescheduling latency adjuster; `respect_burst`: never cut below the average burst."""

    enabled: bool = True
    step_percent: int = STEP_PERCENT
    floor_ns: int = FLOOR_NS
    ceiling_ns: int = CEILING_NS
    start_ns: int = START_NS
    respect_burst: bool = True

    def __post_init__(self) -> None:
        if not 1 <= self.step_percent <= 50:
            raise ValueError(f"rla: step_percent is {self.step_percent}: give 1 to 50")
        if self.floor_ns < 1:
            raise ValueError(f"rla: floor_ns is {self.floor_ns}: give 1 or more")
        if not self.floor_ns <= self.start_ns <= self.ceiling_ns:
            raise ValueError(
                f"rla: floor_ns {self.floor_ns}, start_ns {self.start_ns}, ceiling_ns {self.ceiling_ns}: "
                "give a start that is not below the floor and not above the ceiling"
            )
