"""How much CPU time a vCPU needs whose own quota stops it."""

from __future__ import annotations

from typing import NamedTuple

from ..model import CORE_PPM

MEMORY_NS = 1_000_000_000
"""Of the mean use (docs/measurements.md, "Loans")."""

STOPPED_PERCENT = 35
"""Of the time for which a vCPU is stopped that always wants to run: whose stops are as long counts as stopped
in that look. A few requests that arrive together are stopped for less."""

BINDING = 5
"""Each look in which it is stopped counts one, each other one takes one off: at so many the quota binds. Who
always wants more than its quota is stopped in each look, or in four of five; arrivals by chance that need
three quarters of it are seldom stopped so often (docs/measurements.md, "Loans")."""


class Need(NamedTuple):
    """In millionths of a core: the mean use; how often it was stopped of late; and whether its quota was
    found to bind and no longer need has been seen since."""

    mean_ppm: int
    stopped: int
    binds: bool


def needed(before: Need | None, use_ppm: int, stopped_ppm: int, quota_ppm: int, length_ns: int) -> Need:
    """What it needs after a period in which it used and was stopped for so much below this quota. While its
    quota binds it would use the time for which it is stopped, too."""
    mean_ppm, stopped, binds = before or Need(use_ppm, 0, binds=False)
    is_stopped = stopped_ppm * 100 > (CORE_PPM - quota_ppm) * STOPPED_PERCENT
    stopped = min(BINDING, stopped + 1) if is_stopped else max(0, stopped - 1)
    mean_ppm += (use_ppm - mean_ppm) * min(length_ns, MEMORY_NS) // MEMORY_NS
    if is_stopped and stopped >= BINDING:
        return Need(max(mean_ppm, min(CORE_PPM, use_ppm + stopped_ppm)), stopped, binds=True)
    return Need(mean_ppm, stopped, binds)
