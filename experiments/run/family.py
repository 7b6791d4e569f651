"""What every kind of experiment file has in common for whoever runs one: a module with these functions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from dasec.errors import Refusal

from ..plan.file import Told
from ..results.compare import Side


@dataclass(frozen=True, slots=True)
class Ways:
    """What the command line says of how to run, which changes no number."""

    guests: int = 2
    """Counted ones at a time."""
    anyway: bool = False
    """Also where cores are too few or the host is not quiet."""


def lacking(*asks: Callable[[], object]) -> Iterator[str]:
    """What this machine does not have, of all who refuse to begin without."""
    for ask in asks:
        try:
            ask()
        except Refusal as refusal:
            yield from refusal.lines


class Family(Protocol):
    """Raises Refusal wherever something cannot be done."""

    @property
    def KEYS(self) -> Sequence[str]:  # noqa: N802
        """Any of them says that a file is of this kind."""

    def check(self, told: Told, file: Path, ways: Ways) -> Sequence[str]:
        """Say what would be run; what is missing here."""

    def run(self, told: Told, file: Path, out: Path, ways: Ways) -> None:
        """All that is not there yet, then the report."""

    def report(self, told: Told, folder: Path) -> None:
        """Tables and pictures of what this folder keeps, which was asked for that."""

    def side(self, told: Told, folder: Path) -> Side:
        """The folder, to be compared."""
