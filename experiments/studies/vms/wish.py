"""What is asked of consolidated VMs. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from dasec.lab.kit.scenario import Timing


@dataclass(frozen=True, slots=True)
class Wish:
    """A results folder belongs to one of these."""

    loads: tuple[str, ...]
    ratios: tuple[float, ...]
    arms: tuple[str, ...]
    repetitions: int
    seconds: float
    warmup_s: float
    lead_s: float
    cores: int
    seed: int

    @property
    def timing(self) -> Timing:
        """Of each run."""
        return Timing(self.seconds, self.warmup_s, self.lead_s)
