"""Loads of the catalogue at ratios, utilisations and layouts: `loads = [...]`. Pure; guests import it."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Annotated

from pydantic import AfterValidator, Field

from dasec.lab.kit.arms import GUARDED, settings_of
from dasec.lab.kit.bench import RunPlan
from dasec.lab.kit.layout import GroupLayout
from dasec.lab.kit.scenario import Scenario

from .blocks import Block
from .loads import LOADS, Impossible, Wanted
from .oracle import ORACLE, oracle_settings
from .terms import Cells, Number, Place, PlacedCell, Ratio, Terms, one_of
from .variants import variant_of

NOT_INSIDE = "memcached"
"""A program that guests do not have."""


def _load(name: str) -> str:
    """The name. ValueError if there is no such load."""
    return one_of(name, LOADS)


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite(Terms):
    """Each load at each point."""

    loads: Annotated[tuple[Annotated[str, AfterValidator(_load)], ...], Field(min_length=1)]
    ratios: Annotated[tuple[Ratio, ...], Field(min_length=1)] = (4.0, 8.0)
    utilisations: Annotated[tuple[Annotated[float, Field(gt=0, le=2)], ...], Field(min_length=1)] = (
        0.6,
        0.85,
    )
    """Work asked for a core."""
    layouts: Annotated[tuple[GroupLayout, ...], Field(min_length=1)] = (GroupLayout.FLAT,)
    repetitions: Number = 8
    blame: bool = True

    def __post_init__(self) -> None:
        self.check_machine()
        if self.place is not Place.HOST and NOT_INSIDE in self.loads:
            raise ValueError(f"{NOT_INSIDE} is not in guests: leave it out")

    @property
    def cells(self) -> Cells[Cell]:
        """All points that were asked for. Two that come out alike are one."""
        possible: dict[tuple[str, str, Scenario], Cell] = {}
        impossible = []
        for load in self.loads:
            for ratio in self.ratios:
                for utilisation in self.utilisations:
                    try:
                        scenario = LOADS[load].build(Wanted(self.cpus, ratio, utilisation, self.timing))
                    except Impossible as why:
                        impossible.append(f"{load} at ratio {ratio:g} and utilisation {utilisation:g}: {why}")
                        continue
                    for layout in self.layouts:
                        cell = Cell(load, ratio, utilisation, str(layout), scenario)
                        possible.setdefault((load, str(layout), scenario), cell)
        return Cells(tuple(possible.values()), tuple(impossible))

    def plan(self, block: Block[PlacedCell]) -> RunPlan:
        """The block as the kit takes it."""
        return plan_of(self, block)


def plan_of(terms: Terms, block: Block[PlacedCell]) -> RunPlan:
    """The block as the kit takes it; arrivals depend on seed, cell and repetition alone."""
    critical = [name for tenant in block.cell.scenario.tenants for name in tenant.critical]
    seed = random.Random(f"{terms.seed}/{block.cell.name}").randrange(2**31)
    return RunPlan(
        block.cell.scenario,
        GroupLayout(block.cell.layout),
        terms.timing,
        terms.arms,
        terms.repetitions,
        seed,
        {
            ORACLE: oracle_settings(critical),
            **{arm: settings_of(arm) for arm in terms.arms if arm.endswith(GUARDED)},
            **{one.arm: one.settings for one in map(variant_of, terms.arms) if one},
        },
    )
