"""What is asked of consolidated VMs: `vms = true`. Pure."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator, ConfigDict, Field

from dasec.lab.kit.arms import arms_for, schedule
from dasec.lab.kit.scenario import SERVICE, Scenario, Tenant, Timing
from guests.memcached import VCPUS

from ...plan.arms import known
from ...plan.cells import Cell
from ...plan.terms import Number, Ratio
from .measure import INSIDE, OUTSIDE

LEAD_S = 0.5
"""For the clients to fill memcached."""

OVERHEAD_S = 3.0
"""What a run takes beside its own time, about."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """The keys of a file; a folder of results belongs to one of these."""

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    title: str = ""
    vms: Literal[True] = True
    ratios: Annotated[tuple[Ratio, ...], Field(min_length=1)] = (1.0, 2.0, 3.0)
    """vCPUs a core, as nearly as whole guests make it."""
    policies: tuple[Annotated[str, AfterValidator(known)], ...] = ("critical", "dasec")
    repetitions: Number = 4
    seconds: Annotated[float, Field(ge=1, le=600)] = 5.0
    warmup_s: Annotated[float, Field(ge=0, le=60)] = 1.0
    rate_per_s: Annotated[float, Field(ge=1, le=10_000)] = 50.0
    """Requests of each client."""
    bursts_per_s: Annotated[float, Field(ge=0.1, le=1000)] = 20.0
    """Of 10 ms, in each guest."""
    cpus: Annotated[int, Field(ge=0, le=4096)] = 0
    """0: those of the host."""
    seed: Annotated[int, Field(ge=0, lt=2**31)] = 1

    def __post_init__(self) -> None:
        if not all(self.guests(ratio) for ratio in self.ratios):
            raise ValueError(f"ratios: a guest has {VCPUS} vCPUs: give ratios that make one at least")

    @property
    def cores(self) -> int:
        """That ratios are of."""
        return self.cpus or len(os.sched_getaffinity(0))

    @property
    def arms(self) -> tuple[str, ...]:
        """The plain host, its control, and each policy."""
        return arms_for(self.policies)

    @property
    def timing(self) -> Timing:
        """Of each run."""
        return Timing(self.seconds, self.warmup_s, LEAD_S)

    @property
    def run_s(self) -> float:
        """A run takes about so long."""
        return self.timing.total_s + OVERHEAD_S

    def guests(self, ratio: float) -> int:
        """So many make this ratio."""
        return round(ratio * self.cores / VCPUS)

    def orders(self) -> Iterator[tuple[float, int, tuple[str, ...]]]:
        """Ratio after ratio, because guests take long to boot; the arms of a repetition follow each other."""
        for ratio in sorted(self.ratios):
            orders = schedule(self.arms, self.repetitions, f"{self.seed}/{ratio}")
            for repetition, order in enumerate(orders):
                yield ratio, repetition, order

    def cells(self) -> tuple[Cell, ...]:
        """Each place of a client at each ratio."""
        return tuple(self.cell(where, ratio) for where in (OUTSIDE, INSIDE) for ratio in sorted(self.ratios))

    def cell(self, where: str, ratio: float) -> Cell:
        """One of them."""
        number = self.guests(ratio)
        tenants = tuple(Tenant(f"{where}-{index}", SERVICE, VCPUS) for index in range(number))
        return Cell(where, ratio, 0.0, "vm", Scenario(self.cores, tenants))
