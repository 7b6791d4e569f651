"""What the VMs of a fleet ask for, every five minutes of a day: generated, not recorded.

Each VM has a mean of its own (log-normal), a day (a sine whose peak is nearly the same hour for all, as users
of one region are awake together) and noise that lasts for about half an hour (AR(1) of the logarithm). All
numbers are chosen; README.md shows what other ones change.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from .curves import Floats

STEPS = 288
"""Of five minutes in a day."""

MEMORY = 0.85
"""Correlation of the noise from step to step: 0.85**6 = 0.38 after half an hour."""

PEAK_HOUR, PEAK_SPREAD_H = 20, 1.5
"""Mean and standard deviation of the hour of the peak."""


class Vms(Protocol):
    """Some VMs, with the cores that each asks for on average."""

    @property
    def means(self) -> Floats: ...

    def day(self, random: np.random.Generator) -> Iterator[Floats]:
        """Cores that each asks for, step by step."""
        ...


class VmSource(Protocol):
    """Where the VMs of a fleet come from."""

    def vms(self, count: int, random: np.random.Generator) -> Vms:
        """So many of them."""
        ...


@dataclass(frozen=True, slots=True)
class Demand:
    """`mean_cores`: of an average VM. `unlike`: how far the VMs' means differ; `swing`: how far a day's peak
    is above its mean; `noise`: standard deviation of the logarithm around that."""

    mean_cores: float
    unlike: float = 0.4
    swing: float = 0.5
    noise: float = 0.3

    def vms(self, count: int, random: np.random.Generator) -> GeneratedVms:
        """Each with a mean of its own."""
        means = self.mean_cores * np.exp(random.normal(-(self.unlike**2) / 2, self.unlike, count))
        return GeneratedVms(means, self)


@dataclass(frozen=True, slots=True)
class GeneratedVms:
    """VMs of such a demand."""

    means: Floats
    demand: Demand

    def day(self, random: np.random.Generator) -> Iterator[Floats]:
        """Cores that each asks for, step by step."""
        noise = self.demand.noise
        peaks = random.normal(PEAK_HOUR, PEAK_SPREAD_H, len(self.means))
        state = random.normal(0, noise, len(self.means))
        fresh = noise * np.sqrt(1 - MEMORY**2)
        for step in range(STEPS):
            hour = 24 * step / STEPS
            of_day = 1 + self.demand.swing * np.cos((hour - peaks) * np.pi / 12)
            yield self.means * of_day * np.exp(state - noise**2 / 2)
            state = MEMORY * state + random.normal(0, fresh, len(self.means))
