"""One step down, one step up, and how far down a vCPU may go."""

from __future__ import annotations

from ..model import Usage
from .parameters import RlaParameters

WHOLE = 1_000_000
"""Parts of a step are counted in millionths."""


def limit_ns(used: Usage, parameters: RlaParameters) -> int:
    """The lowest latency that a vCPU may get: the floor, or its average burst if that is longer."""
    if not parameters.respect_burst:
        return parameters.floor_ns
    return max(parameters.floor_ns, used.consumed_ns // (used.dispatches or 1))


def lowered_ns(latency_ns: int, part: int, lowest_ns: int, parameters: RlaParameters) -> int:
    """The latency after `part` millionths of a step down, within [lowest, ceiling]; itself if as low."""
    if latency_ns <= lowest_ns:
        return latency_ns
    step_ns = latency_ns * parameters.step_percent * part // (100 * WHOLE)
    return min(max(latency_ns - step_ns, lowest_ns), parameters.ceiling_ns)


def raised_ns(latency_ns: int, parameters: RlaParameters) -> int:
    """The latency after one step up, within [floor, ceiling]; itself if as high."""
    if latency_ns >= parameters.ceiling_ns:
        return latency_ns
    up_ns = latency_ns * 100 // (100 - parameters.step_percent)
    return max(min(up_ns, parameters.ceiling_ns), parameters.floor_ns)
