"""One block as a word: what a guest is told on its kernel's command line. Pure; both sides have it."""

from __future__ import annotations

from dataclasses import dataclass

from ...plan.blocks import Block
from ...plan.cells import Cell, Wish
from ...plan.loads import LOADS, Wanted
from ...plan.word import Worded


@dataclass(frozen=True, slots=True)
class Order(Worded):
    """A block without its scenario, which follows from the rest."""

    wish: Wish
    load: str
    ratio: float
    utilisation: float
    layout: str
    repetition: int
    arms: tuple[str, ...]

    @classmethod
    def of(cls, wish: Wish, block: Block[Cell]) -> Order:
        """To do this block."""
        cell = block.cell
        return cls(wish, cell.load, cell.ratio, cell.utilisation, cell.layout, block.repetition, block.arms)

    @property
    def block(self) -> Block[Cell]:
        """As it was."""
        wanted = Wanted(self.wish.cores, self.ratio, self.utilisation, self.wish.timing)
        scenario = LOADS[self.load].build(wanted)
        cell = Cell(self.load, self.ratio, self.utilisation, self.layout, scenario)
        return Block(cell, self.repetition, self.arms)
