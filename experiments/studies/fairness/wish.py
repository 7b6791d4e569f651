"""What is to be measured: contests in layouts, under these arms. Pure; the guest imports it, too."""

from __future__ import annotations

import random
from dataclasses import dataclass

from dasec.critical.parameters import Fairness
from dasec.lab.kit.arms import CONTROL, NONE, settings_of
from dasec.lab.kit.layout import GroupLayout
from dasec.lab.kit.run import DemoPlan
from dasec.lab.kit.scenario import Timing

from ...plan.blocks import Block
from ...plan.word import Worded
from .scenarios import CONTESTS

POLICY = "critical"
ARMS = (NONE, CONTROL, POLICY)


@dataclass(frozen=True, slots=True)
class Wish:
    """Everything that was asked for; a results folder belongs to one of these."""

    contests: tuple[str, ...]
    layouts: tuple[str, ...]
    repetitions: int
    timing: Timing
    cores: int
    seed: int
    pinned: bool = False
    """Each thread keeps to one core, so that weights are compared and not where the kernel puts threads."""
    fairness: Fairness = Fairness.STRICT
    """`critical`'s, towards other workloads (docs/decisions/0037-fairness.md)."""

    @property
    def cells(self) -> tuple[Cell, ...]:
        """All of them."""
        return tuple(Cell(contest, layout) for layout in self.layouts for contest in self.contests)


@dataclass(frozen=True, slots=True)
class Cell:
    """One contest in one layout."""

    contest: str
    layout: str

    @property
    def name(self) -> str:
        """As the names of files have it."""
        return f"{self.contest}-{self.layout}"

    @classmethod
    def named(cls, name: str) -> Cell:
        """The cell of that name."""
        contest, _, layout = name.rpartition("-")
        return cls(contest, layout)


def plan_of(wish: Wish, block: Block[Cell]) -> DemoPlan:
    """The block as the demo's machinery takes it; the guard is off, the policy itself is measured."""
    cell = block.cell
    return DemoPlan(
        CONTESTS[cell.contest].scenario(wish.cores),
        GroupLayout(cell.layout),
        wish.timing,
        block.arms,
        wish.repetitions,
        random.Random(f"{wish.seed}/{cell.contest}/{cell.layout}").randrange(2**31),
        {POLICY: f'{settings_of(POLICY)}[{POLICY}]\nfairness = "{wish.fairness}"\n'},
    )


@dataclass(frozen=True, slots=True)
class Order(Worded):
    """One block of a wish, as a guest is told it."""

    wish: Wish
    block: Block[Cell]
