"""Which blocks there are, and in what order: all in each repetition, shuffled. Pure; guests import it."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from dasec.lab.kit.arms import schedule


class Named(Protocol):
    """What is measured: a cell of an experiment. Two of one name are one."""

    @property
    def name(self) -> str:
        """As in the report and in the names of files."""


CellT = TypeVar("CellT", bound=Named, covariant=True)


@dataclass(frozen=True, slots=True)
class Block(Generic[CellT]):
    """All arms of one cell in one repetition: they follow each other and have the same arrivals."""

    cell: CellT
    repetition: int
    arms: tuple[str, ...]

    @property
    def key(self) -> tuple[str, int]:
        """What distinguishes it."""
        return self.cell.name, self.repetition


def blocks_of(
    cells: Sequence[CellT], arms: Sequence[str], repetitions: int, seed: int
) -> Iterator[Block[CellT]]:
    """Every cell once a repetition, in another order each time. The arms of a cell take turns in being the
    first; who begins follows from the cell's name, so that no arm is always the first of its guest where an
    experiment is one cell."""
    orders = {cell.name: schedule(arms, repetitions, f"{seed}/{cell.name}") for cell in cells}
    for repetition in range(repetitions):
        for cell in random.Random(f"{seed}/{repetition}").sample(cells, len(cells)):
            yield Block(cell, repetition, orders[cell.name][repetition])
