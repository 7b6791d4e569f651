"""What is measured: the guests, and what the daemon is told under each arm. Pure; the guest imports it, too.

A cell is one repetition of all arms at one consolidation ratio, in a guest of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

from dasec.lab.kit.arms import CONTROL, NONE, schedule
from dasec.lab.kit.layout import GroupLayout
from dasec.lab.kit.run import DemoPlan
from dasec.lab.kit.scenario import FanOut, Scenario, Timing

from ...places.counted.cpus import Cpus

CORES = 4
"""For the services; the guest has one more for the daemon and for what measures."""

CPUS = Cpus(CORES)

RATE_PER_S = 360
"""Requests of one service: with the default stages 0.61 cores of work and 0.15 in the background, so that
four services load four cores to 0.76, the kernel's own work not counted."""

RULES = ("tsa", "rla", "rcr")
ALL_RULES = "all"
OURS = "critical"
POLICIES = (*RULES, ALL_RULES, OURS)
ARMS = (NONE, CONTROL, *POLICIES)
RATIOS = (1, 2, 3, 4)
REPETITIONS = 4
SEED = 1

SECONDS, WARMUP_S = 4.0, 2.5
"""In the guest's seconds. In 31 periods of warm-up RLA can go from its start to its floor."""

LEAD_S, LEAD_OF_A_SERVICE_S = 4.0, 1.0
"""Until the first request: the daemon needs 2 s of a 200 MIPS core to be there, and each service a second."""

RLA_ON_CFS = "[rla]\nfloor_us = 100\nstart_us = 3000\nceiling_us = 9000\nrespect_burst = false\n"
"""On CFS the wake-up granularity means something between 0 and half the scheduling latency, which is 18 ms
on five CPUs (kernel/sched/fair.c: 6 ms times get_update_sysctl_factor() = 3); 3 ms is the kernel's
default there. A short granularity interrupts nobody's own burst, other than EEVDF's slice."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One guest."""

    ratio: int
    repetition: int

    @property
    def name(self) -> str:
        """As the guest's kernel command line and the result's file have it."""
        return f"{self.ratio}-{self.repetition}"

    @classmethod
    def named(cls, name: str) -> Cell:
        """The cell of that name."""
        ratio, repetition = map(int, name.split("-"))
        return cls(ratio, repetition)

    @property
    def plan(self) -> DemoPlan:
        """In the demo's terms."""
        settings = {arm: settings_for(arm) for arm in POLICIES}
        timing = Timing(SECONDS, WARMUP_S, LEAD_S + LEAD_OF_A_SERVICE_S * self.ratio)
        return DemoPlan(scenario_for(self.ratio), GroupLayout.VM, timing, ARMS, REPETITIONS, SEED, settings)

    @property
    def order(self) -> tuple[str, ...]:
        """The arms in this guest's order, another one in each."""
        return schedule(ARMS, 1, 10 * self.repetition + self.ratio)[0]


def cells(ratios: Sequence[int], repetitions: int) -> tuple[Cell, ...]:
    """In the order of measuring: one ratio is complete before the next one begins."""
    return tuple(Cell(ratio, repetition) for ratio, repetition in product(ratios, range(repetitions)))


def settings_for(arm: str) -> str:
    """The configuration under which only the arm's rule works, or all of them, or our own policy."""
    if arm == OURS:
        return f'policy = "{OURS}"\n'
    switches = "".join(f"[{rule}]\nenabled = false\n" for rule in RULES if arm not in (rule, ALL_RULES))
    return f'policy = "dasec"\n{switches}' + ("" if "[rla]" in switches else RLA_ON_CFS)


def scenario_for(ratio: int) -> Scenario:
    """`ratio` services with as many vCPUs each as there are cores: main, helpers, one in the background."""
    services = [
        FanOut(f"service-{index}", rate_per_s=RATE_PER_S, helpers=CORES - 2) for index in range(ratio)
    ]
    return Scenario(CORES, tuple(services))
