"""Recorded days as the demand of VMs: files as PlanetLab's, a line for each five minutes, in percent.

None is kept in this repository. https://github.com/beloglazov/planetlab-workload-traces has ten days of some
thousand VMs each, of 2011; a folder of one of them is what `--traces` takes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import click
import numpy as np

from .curves import Floats
from .demand import STEPS


@dataclass(frozen=True, slots=True, eq=False)
class Traces:
    """`asked`: cores, a row for each recorded VM and a column for each step."""

    asked: np.ndarray[tuple[int, int], np.dtype[np.float64]]

    @classmethod
    def read(cls, folder: Path, mean_cores: float) -> Traces:
        """All files of a folder; the average VM asks for so many cores. Raises BadParameter for what is no
        such day."""
        files = sorted(path for path in folder.iterdir() if path.is_file())
        percent = np.array([_day(path) for path in files])
        if not percent.size or not percent.mean():
            raise click.BadParameter(f"{folder}: no day in which anything ran: give a folder of traces")
        return cls(percent * (mean_cores / percent.mean()))

    def vms(self, count: int, random: np.random.Generator) -> TracedVms:
        """Each is one of the recorded, drawn by chance; several may be the same."""
        return TracedVms(self.asked[random.integers(0, len(self.asked), count)])


@dataclass(frozen=True, slots=True, eq=False)
class TracedVms:
    """VMs that live their recorded day; each day is the same."""

    asked: np.ndarray[tuple[int, int], np.dtype[np.float64]]

    @property
    def means(self) -> Floats:
        """Cores that each asks for on average."""
        found: Floats = self.asked.mean(axis=1)
        return found

    def day(self, random: np.random.Generator) -> Iterator[Floats]:  # noqa: ARG002 - a record knows no chance
        """Cores that each asks for, step by step."""
        yield from self.asked.T


def _day(path: Path) -> list[float]:
    try:
        percent = [float(line) for line in path.read_text(encoding="utf-8").split()]
    except ValueError as error:
        raise click.BadParameter(f"{path}: {error}: one number in each line, in percent") from error
    if len(percent) != STEPS or not all(0 <= each < float("inf") for each in percent):
        raise click.BadParameter(f"{path}: a day has {STEPS} lines of percent, one for each five minutes")
    return percent
