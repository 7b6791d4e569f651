"""What a host holds, on paper: no fleet and no chance, two sums and one quantile.

n VMs of mean m ask for n m d(t) at the hour t, where d is the day that all have. Each one's noise is its
own, so the variance is n m² d² e^(u²) (e^(s²) - 1), with u for how unlike the VMs are and s for the noise. A
sum of few log-normals is nearly log-normal (Fenton 1960), so the part of the day in which a host is below a
bound follows from mean and variance. n is as great as that part allows, and need be no whole number.
"""

from __future__ import annotations

from math import cos, erf, exp, log, log1p, pi, sqrt

from .capacity import KEPT
from .demand import PEAK_HOUR, PEAK_SPREAD_H, STEPS, Demand

HALVINGS = 40


def held_on_paper(demand: Demand, most_cores: float) -> float:
    """VMs a host, if it may use so many cores in the part KEPT of all steps."""
    low, high = 0.0, most_cores / demand.mean_cores
    for _ in range(HALVINGS):
        vms = (low + high) / 2
        low, high = (vms, high) if part_kept(demand, vms, most_cores) >= KEPT else (low, vms)
    return low


def part_kept(demand: Demand, vms: float, most_cores: float) -> float:
    """Part of a day in which so many VMs ask for no more cores than that."""
    # Peaks that are spread by a normal distribution are together a lower one.
    swing = demand.swing * exp(-((PEAK_SPREAD_H * pi / 12) ** 2) / 2)
    relative = exp(demand.unlike**2) * (exp(demand.noise**2) - 1) / vms
    spread = log1p(relative)
    kept = 0.0
    for step in range(STEPS):
        mean = vms * demand.mean_cores * (1 + swing * cos((24 * step / STEPS - PEAK_HOUR) * pi / 12))
        kept += _normal((log(most_cores / mean) + spread / 2) / sqrt(spread))
    return kept / STEPS


def _normal(quantile: float) -> float:
    return (1 + erf(quantile / sqrt(2))) / 2
