"""A block as a word: what a guest is told on its kernel's command line. Pure; both sides have it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

from .blocks import Block
from .cells import Suite
from .contests import Contests
from .hosts import Hosts
from .servers import Servers
from .terms import PlacedCell
from .testbed import Shapes
from .word import Worded

Planned = Shapes | Suite | Contests | Servers | Hosts
"""The kinds of experiments that are made of plans; the keys of a file say which of them it is."""


@dataclass(frozen=True, slots=True)
class Order(Worded):
    """A cell by its name: it follows from the experiment."""

    experiment: Planned
    cell: str
    repetition: int
    arms: tuple[str, ...]

    @classmethod
    def of(cls, experiment: Planned, block: Block[PlacedCell]) -> Self:
        """To do this block. What only people read is left out."""
        return cls(replace(experiment, title=""), block.cell.name, block.repetition, block.arms)

    @property
    def block(self) -> Block[PlacedCell]:
        """As it was."""
        (cell,) = (one for one in self.experiment.cells.possible if one.name == self.cell)
        return Block(cell, self.repetition, self.arms)
