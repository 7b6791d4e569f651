"""One block as a word: what a guest is told on its kernel's command line. Pure; both sides have it."""

from __future__ import annotations

import base64
import zlib
from dataclasses import dataclass

from pydantic import TypeAdapter

from .catalogue import LOADS, Wanted
from .cells import Block, Cell, Wish


@dataclass(frozen=True, slots=True)
class Order:
    """A block without its scenario, which follows from the rest."""

    wish: Wish
    load: str
    ratio: float
    utilisation: float
    layout: str
    repetition: int
    arms: tuple[str, ...]

    @classmethod
    def of(cls, wish: Wish, block: Block) -> Order:
        """To do this block."""
        cell = block.cell
        return cls(wish, cell.load, cell.ratio, cell.utilisation, cell.layout, block.repetition, block.arms)

    @property
    def block(self) -> Block:
        """As it was."""
        wanted = Wanted(self.wish.cores, self.ratio, self.utilisation, self.wish.timing)
        scenario = LOADS[self.load].build(wanted)
        cell = Cell(self.load, self.ratio, self.utilisation, self.layout, scenario)
        return Block(cell, self.repetition, self.arms)

    @property
    def word(self) -> str:
        """Without a space or a quotation mark, and short: the kernel's command line has 2048 characters
        (COMMAND_LINE_SIZE in arch/x86/include/asm/setup.h)."""
        return base64.urlsafe_b64encode(zlib.compress(_ORDER.dump_json(self), 9)).decode("ascii")

    @classmethod
    def read(cls, word: str) -> Order:
        """From its word."""
        return _ORDER.validate_json(zlib.decompress(base64.urlsafe_b64decode(word)))


_ORDER = TypeAdapter(Order)
