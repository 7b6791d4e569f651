"""What the VMs of a fleet ask for, every five minutes of a day: generated, not recorded.

Each VM has a mean of its own (log-normal), a day (a sine whose peak is nearly the same hour for all, as users
of one region are awake together) and noise that lasts for about half an hour (AR(1) of the logarithm). All
numbers are chosen; README.md shows what other ones change.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from .curves import Floats

STEPS = 288
"""Of five minutes in a day."""

MEMORY = 0.85
"""Correlation of the noise from step to step: 0.85**6 = 0.38 after half an hour."""

PEAK_SPREAD_H = 1.5
"""Standard deviation of the hour of the peak."""


@dataclass(frozen=True, slots=True)
class Demand:
    """`mean_cores`: of an average VM. `unlike`: how far the VMs' means differ; `swing`: how far a day's peak
    is above its mean; `noise`: standard deviation of the logarithm around that."""

    mean_cores: float
    unlike: float = 0.4
    swing: float = 0.5
    noise: float = 0.3

    def means(self, vms: int, random: np.random.Generator) -> Floats:
        """Cores that each VM asks for on average."""
        return self.mean_cores * np.exp(random.normal(-(self.unlike**2) / 2, self.unlike, vms))

    def day(self, means: Floats, random: np.random.Generator) -> Iterator[Floats]:
        """Cores that each VM asks for, step by step."""
        peaks = random.normal(20, PEAK_SPREAD_H, len(means))
        state = random.normal(0, self.noise, len(means))
        fresh = self.noise * np.sqrt(1 - MEMORY**2)
        for step in range(STEPS):
            hour = 24 * step / STEPS
            of_day = 1 + self.swing * np.cos((hour - peaks) * np.pi / 12)
            yield means * of_day * np.exp(state - self.noise**2 / 2)
            state = MEMORY * state + random.normal(0, fresh, len(means))
