"""Experiments whose workloads stand in their file: `[[workload]]`. Pure; the guest imports it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator, ConfigDict, Field

from dasec.lab.kit.bench import RunPlan
from dasec.lab.kit.scenario import Scenario, Timing

from ..places.counted.cpus import Cpus
from ..places.counted.speed import LONGEST_TURN, SHORTEST_TURN, TURN, cpus_for
from .arms import capped, dasec_settings, known
from .blocks import Block
from .cells import Cell, plan_of
from .shapes import Background, Shape, convoy, fan_out, pipeline, server
from .terms import Cells, Count, Name, Number, Place, PlacedCell, Positive, Ratio, Terms, check_once

FAN_OUT: Literal["fan-out"] = "fan-out"
HELPER_US = 600
LEAST_SERVING = {FAN_OUT: 2, "pipeline": 2, "convoy": 3, "server": 1}
"""A main thread, and a helper or stage; in a convoy a worker and who holds the lock; a server is alone."""

CFS = "6.1"
SCHED_LATENCY_MS, WAKEUP_GRANULARITY_MS, MOST_CPUS = 6, 1, 8
"""Of CFS, to be multiplied by 1 + log2 of the number of CPUs, 8 at most (kernel/sched/fair.c:
get_update_sysctl_factor())."""


@dataclass(frozen=True, slots=True)
class Workload:
    """Workloads of one kind: a request's way through `threads` threads, of which some burst on their own."""

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    name: Name
    threads: Annotated[int, Field(ge=2, le=256)]
    rates_per_s: Annotated[tuple[Positive, ...], Field(min_length=1)]
    """Requests of one workload, whatever the ratio: more workloads ask for more."""
    step_to_per_s: Positive | None = None
    """From the middle of the measured part on; left out: nothing changes."""
    kind: Literal["fan-out", "pipeline", "convoy", "server"] = FAN_OUT
    answers: bool = False
    """Does the process that asks a server wait for its answers?"""
    background: Annotated[int, Field(ge=0)] = 0
    burst_us: Count = 10_000
    bursts_per_s: Positive = 24.0
    wakes: Literal["none", "logger", "peer"] = "none"
    """Whom each burst wakes: one logger, or each thread a peer of its own. They are among `threads`."""
    woken_us: Annotated[int, Field(ge=0)] = 0
    """What a logger or a peer computes each time."""
    helper_us: Count = HELPER_US
    imbalance: Count = 1
    pinned: bool = False
    """Each thread has one CPU, as with <vcpupin>; workloads begin at CPUs that are evenly apart."""
    quota_cores: Positive | None = None
    """The CPU limit of each workload, on its group."""
    vcpu_quota_cores: Annotated[float, Field(gt=0, lt=1)] | None = None
    """That of each of its threads, as libvirt's `vcpu_quota`."""

    def __post_init__(self) -> None:
        if self.serving < LEAST_SERVING[self.kind]:
            raise ValueError(
                f"background = {self.background} leaves {self.serving} of {self.threads} threads to serve:"
                f" {self.kind} needs {LEAST_SERVING[self.kind]}"
            )
        if self.kind == "server" and self.serving > 1:
            raise ValueError(f"{self.serving} threads of {self.threads} serve: a server is one thread")
        if self.answers and self.kind != "server":
            raise ValueError(f"answers are of a server, not of {self.kind}: leave them out")
        if self.wakes != "none" and not self.background:
            raise ValueError("wakes is of background threads: give background")
        if self.kind != FAN_OUT and not self.background:
            raise ValueError(f"{self.kind} needs background threads: give background")
        if self.kind != FAN_OUT and (self.helper_us, self.imbalance) != (HELPER_US, 1):
            raise ValueError(f"helper_us and imbalance are of fan-out, not of {self.kind}: leave them out")

    def told(self, number: int, count: int, cpus: int, timing: Timing) -> Mapping[str, str]:
        """What the load tool is told of the place of one of `count` workloads, and of a step."""
        pins = {"pin-from": str(number * cpus // count)} if self.pinned else {}
        if self.step_to_per_s is None:
            return pins
        at_s = timing.warmup_s + timing.seconds / 2
        return {**pins, "step-rate": f"{self.step_to_per_s:g}", "step-at": f"{at_s:g}"}

    @property
    def bursts(self) -> Background:
        """Its background."""
        return Background(self.background, self.burst_us, self.bursts_per_s, self.wakes, self.woken_us)

    @property
    def serving(self) -> int:
        """Threads that requests wait for."""
        return self.threads - self.bursts.vcpus

    def shape(self, rate_per_s: float) -> Shape:
        """As the suite of loads builds it."""
        bursts, serving = self.bursts, self.serving
        if self.kind == FAN_OUT:
            beside = bursts if self.background else None
            made = fan_out(rate_per_s, serving - 1, beside, self.helper_us, self.imbalance)
        elif self.kind == "pipeline":
            made = pipeline(serving - 1, bursts)
        elif self.kind == "server":
            made = server(bursts, answers=self.answers)
        else:
            made = convoy(serving - 2, bursts)
        return replace(made, rate_per_s=rate_per_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shapes(Terms):
    """As many of each workload as a ratio asks for."""

    workload: Annotated[tuple[Workload, ...], Field(min_length=1)]
    ratios: Annotated[tuple[Ratio, ...], Field(min_length=1)]
    policies: tuple[Annotated[str, AfterValidator(known)], ...]
    place: Place = Place.TESTBED
    turn_instructions: Annotated[int, Field(ge=SHORTEST_TURN, le=LONGEST_TURN)] = TURN
    """That a CPU has before the next one is emulated."""
    repetitions: Number = 2
    seconds: Positive = 2.0
    warmup_s: Annotated[float, Field(ge=0)] = 1.5
    lead_s: Positive = 6.0
    """With 2.5 s the daemon's first look was two seconds before the end: no policy was settled when its
    latency was measured."""

    def __post_init__(self) -> None:
        self.check_machine()
        if self.place is Place.TESTBED:
            cpus_for(self.cpus, self.turn_instructions, self.topology, asking=self.asking)
        names = [f"{one.name} at {rate:g}/s" for one in self.workload for rate in one.rates_per_s]
        check_once(names, "give each workload a name of its own")

    @property
    def machine(self) -> Cpus:
        """The CPUs of a guest; in the testbed with turns as the file says."""
        if self.place is Place.TESTBED:
            return cpus_for(self.cpus, self.turn_instructions, self.topology, asking=self.asking)
        return Cpus(self.cpus, asking=self.asking)

    @property
    def cells(self) -> Cells[Cell]:
        """Every workload at every rate, ratio and layout."""
        return Cells(tuple({cell.name: cell for cell in self._cells()}.values()))

    def _cells(self) -> Iterator[Cell]:
        for workload in self.workload:
            for rate_per_s in workload.rates_per_s:
                for ratio in self.ratios:
                    count = max(1, round(ratio * self.cpus / workload.threads))
                    shape = workload.shape(rate_per_s)
                    tenants = tuple(
                        replace(
                            shape.service(
                                f"vm-{number}", 1.0, workload.told(number, count, self.cpus, self.timing)
                            ),
                            quota_cores=workload.quota_cores,
                            vcpu_quota_cores=workload.vcpu_quota_cores,
                        )
                        for number in range(count)
                    )
                    scenario = Scenario(self.cpus, tenants)
                    asked = round(count * shape.cores / self.cpus, 3)
                    for layout in self.layouts:
                        name = f"{workload.name}-{rate_per_s:g}"
                        yield Cell(name, scenario.consolidation_ratio, asked, str(layout), scenario)

    def plan(self, block: Block[PlacedCell]) -> RunPlan:
        """The block as the kit takes it."""
        plan = plan_of(self, block)
        rla = self._rla_on_cfs() if self.kernel == CFS else ""
        settings = {**dasec_settings(block.arms, rla), **plan.settings}
        return replace(plan, settings={**settings, **capped(block.arms, settings)})

    def _rla_on_cfs(self) -> str:
        """RLA between 0.1 ms and half the scheduling latency, beyond which CFS knows no difference, from the
        kernel's own granularity on; a short one interrupts nobody's own burst (experiments/studies/fig13)."""
        factor = 1 + int(math.log2(min(self.machine.total, MOST_CPUS)))
        start_us, ceiling_us = 1000 * factor * WAKEUP_GRANULARITY_MS, 500 * factor * SCHED_LATENCY_MS
        return f"floor_us = 100\nstart_us = {start_us}\nceiling_us = {ceiling_us}\nrespect_burst = false\n"
