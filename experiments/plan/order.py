"""A block as a word: what a guest is told on its kernel's command line. Pure; both sides have it."""

from __future__ import annotations

from dataclasses import dataclass

from .blocks import Block
from .cells import Cell
from .experiment import Experiment
from .word import Worded


@dataclass(frozen=True, slots=True)
class Order(Worded):
    """A cell by its name: it follows from the experiment."""

    experiment: Experiment
    cell: str
    repetition: int
    arms: tuple[str, ...]

    @property
    def block(self) -> Block[Cell]:
        """As it was."""
        (cell,) = (one for one in self.experiment.cells.possible if one.name == self.cell)
        return Block(cell, self.repetition, self.arms)
