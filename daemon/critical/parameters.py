"""Settings of the policy `critical`."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

from ..model import Workload
from ..settings import Range, check

WEIGHT_RATIO = 7
"""Weight of the most to that of the least critical vCPU. Mean latency of the best rule with 3 : 1, 7 : 1
and 20 : 1 was .52, .43 and .41 of the default (docs/measurements.md, "Weights that follow the critical
path")."""

NESTED_WEIGHT_RATIO = 20
"""The same where a group around the workload competes for all its vCPUs. The kernel divides such a group's
weight among cores by the load there *on average* (calc_group_shares() in kernel/sched/fair.c), to which
critical vCPUs, which mostly sleep, add little: 7 : 1 inside is about 3 : 1 between a critical vCPU and
another workload's background, 20 : 1 about 7 : 1 (docs/measurements.md, "Group scheduling")."""

MAX_WEIGHT_RATIO = 32
"""Weights lie within [1/8, 8] × neutral, the bounds that plan.py keeps; half of that range."""

MAX_LATENCY_PERCENT = 1000
"""By hand, against slips of the pen: 28 ms on eight cores, where 12 ms did no more than a quarter longer."""

DECAY_PERCENT = 85
"""What is left of a count after a period: a memory of 6.7 periods, half a second. Shorter memories (60)
settled no sooner (docs/measurements.md, "Weights that follow the critical path")."""

BURST_NS = 2_000_000
"""Bursts up to this count as short; the measured helpers worked 0.5 to 3 ms at a time, background 5 to 10 ms
(docs/measurements.md, "Weights that follow the critical path")."""

DEADBAND_PERCENT = 20
"""A weight is written again when it is off by more. Between 3 : 1 and 7 : 1 lies a fifth of the gain, so a
ratio that is a fifth off costs little; what is off is charged (weights.py), so that it does not add up."""


YIELD_LATENCY_PERCENT = 125
"""Of what they had, for those who yield: any longer slice lets a woken thread take the core, and the longer
it is, the longer waits who may not take it (docs/decisions/0031-yielding.md)."""

_RATIO = f"the largest weight to the smallest, from 2 to {MAX_WEIGHT_RATIO}"
_NESTED = f"the same below a group of the workload's own, from 2 to {MAX_WEIGHT_RATIO}"
_YIELD = f"an integer from 100 (as it is) to {MAX_LATENCY_PERCENT}"


class Fairness(StrEnum):
    """Who pays that the critical vCPUs of a workload are served first."""

    STRICT = "strict"
    """Nobody: no weight rises above neutral, and nobody is lowered for long that always wants to run
    (late.py)."""
    GIVING = "giving"
    """Nobody else: as STRICT, but the workload's own other vCPUs are lowered however long they wait."""
    DEMAND = "demand"
    """What its other vCPUs lend by their demand, which can be pretended (weights.py)."""


@dataclass(frozen=True, slots=True)
class CriticalParameters:
    """Settings of the policy `critical`.

    `guess`: judge vCPUs by their bursts alone where the host does not count who woke whom. Wrong, and
    harmful, where the critical vCPUs have the longer bursts. `yield_latency_percent`: the rescheduling
    latency of those who yield, of what they had; 100: as it is. `fairness` is towards other workloads
    (docs/decisions/0037-fairness.md)."""

    weight_ratio: Annotated[int, Range(2, MAX_WEIGHT_RATIO, _RATIO)] = WEIGHT_RATIO
    nested_weight_ratio: Annotated[int, Range(2, MAX_WEIGHT_RATIO, _NESTED)] = NESTED_WEIGHT_RATIO
    decay_percent: Annotated[int, Range(10, 99)] = DECAY_PERCENT
    burst_ns: Annotated[int, Range(1, 100_000, unit="us")] = BURST_NS
    deadband_percent: Annotated[int, Range(0, 25)] = DEADBAND_PERCENT
    guess: bool = False
    yield_latency_percent: Annotated[int, Range(100, MAX_LATENCY_PERCENT, _YIELD)] = YIELD_LATENCY_PERCENT
    fairness: Fairness = Fairness.STRICT

    def __post_init__(self) -> None:
        check(self)

    def is_strict(self, workload: Workload) -> bool:
        """Whether no weight in this workload may rise. Below a group of its own a sum of weights takes
        nothing from other workloads, whatever it is."""
        return self.fairness is not Fairness.DEMAND and not workload.nested
