"""A block as a word: what a guest is told on its kernel's command line. Pure; both sides have it."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import TypeAdapter

from ..loads.cells import Cell
from ..suite.blocks import Block
from ..suite.word import told_in, word_of
from .experiment import Experiment


@dataclass(frozen=True, slots=True)
class Order:
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

    @property
    def word(self) -> str:
        """As the guest is told it."""
        return word_of(_ORDER.dump_json(self))

    @classmethod
    def read(cls, word: str) -> Order:
        """From its word."""
        return _ORDER.validate_json(told_in(word))


_ORDER = TypeAdapter(Order)
