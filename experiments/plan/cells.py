"""What is to be measured: cells (a load at a ratio, a utilisation and a layout), how often, in what order."""

from __future__ import annotations

import random
from dataclasses import dataclass

from dasec.lab.kit.arms import GUARDED, settings_of
from dasec.lab.kit.layout import GroupLayout
from dasec.lab.kit.run import DemoPlan
from dasec.lab.kit.scenario import Scenario, Timing

from .blocks import Block
from .loads import LOADS, Impossible, Wanted
from .oracle import ORACLE, oracle_settings
from .variants import variant_of

RUN_OVERHEAD_S = 0.8
"""What a run takes beside its own time, about: 0.3 s to stop the daemon and remove groups, as in the demo
(experiments/studies/demo/README.md), and something for starts that were missed and made again."""


@dataclass(frozen=True, slots=True)
class Wish:
    """Everything that the suite was asked to do; a results folder belongs to one of these."""

    loads: tuple[str, ...]
    ratios: tuple[float, ...]
    utilisations: tuple[float, ...]
    layouts: tuple[str, ...]
    arms: tuple[str, ...]
    repetitions: int
    seconds: float
    warmup_s: float
    lead_s: float
    cores: int
    seed: int
    blame: bool
    records: bool

    @property
    def timing(self) -> Timing:
        """Of each run."""
        return Timing(self.seconds, self.warmup_s, self.lead_s)

    @property
    def run_s(self) -> float:
        """How long a run takes, about."""
        return self.timing.total_s + RUN_OVERHEAD_S


@dataclass(frozen=True, slots=True)
class Cell:
    """One load at one point."""

    load: str
    ratio: float
    utilisation: float
    layout: str
    scenario: Scenario

    @property
    def name(self) -> str:
        """As in the report and in the names of files."""
        return f"{self.load}-r{self.ratio:g}-u{self.utilisation:g}-{self.layout}"


@dataclass(frozen=True, slots=True)
class Cells:
    """Those that exist, and why others do not."""

    possible: tuple[Cell, ...]
    impossible: tuple[str, ...]


def cells_of(wish: Wish) -> Cells:
    """All points that were asked for. Two that come out alike are one."""
    possible: dict[tuple[str, str, Scenario], Cell] = {}
    impossible = []
    for load in wish.loads:
        for ratio in wish.ratios:
            for utilisation in wish.utilisations:
                try:
                    scenario = LOADS[load].build(Wanted(wish.cores, ratio, utilisation, wish.timing))
                except Impossible as why:
                    impossible.append(f"{load} at ratio {ratio:g} and utilisation {utilisation:g}: {why}")
                    continue
                for layout in wish.layouts:
                    cell = Cell(load, ratio, utilisation, layout, scenario)
                    possible.setdefault((load, layout, scenario), cell)
    return Cells(tuple(possible.values()), tuple(impossible))


def plan_of(wish: Wish, block: Block[Cell]) -> DemoPlan:
    """The block as the demo's machinery takes it; arrivals depend on seed, cell and repetition alone."""
    critical = [name for tenant in block.cell.scenario.tenants for name in tenant.critical]
    seed = random.Random(f"{wish.seed}/{block.cell.name}").randrange(2**31)
    return DemoPlan(
        block.cell.scenario,
        GroupLayout(block.cell.layout),
        wish.timing,
        wish.arms,
        wish.repetitions,
        seed,
        {
            ORACLE: oracle_settings(critical),
            **{arm: settings_of(arm) for arm in wish.arms if arm.endswith(GUARDED)},
            **{one.arm: one.settings for one in map(variant_of, wish.arms) if one},
        },
    )
