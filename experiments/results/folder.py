"""A folder of results, read: what was asked, what was measured, what could not be."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from pydantic import TypeAdapter

from dasec.errors import ExitStatus, Refusal
from dasec.lab.kit.bench import run_name
from dasec.lab.kit.results import RunResult

from ..drivers.catalogue import DRIVERS
from ..plan.points import Cell, Gap, arms_of, cells_of
from ..plan.schema import Experiment
from .analysis import summarise
from .rows import ALL, Row
from .store import Asked, Done, Store

CONDITIONS = "conditions.json"


@dataclass(frozen=True, slots=True)
class Conditions:
    """What the last start found: parts that cannot be measured here, and what the host should have been."""

    gaps: tuple[Gap, ...] = ()
    missed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Results:
    """All of it."""

    folder: Path
    asked: Asked[Experiment]
    conditions: Conditions
    done: tuple[Done, ...]
    rows: tuple[Row[Cell], ...]

    @property
    def experiment(self) -> Experiment:
        """What was asked."""
        return self.asked.wish

    @property
    def whole(self) -> tuple[Row[Cell], ...]:
        """One row a cell."""
        return tuple(row for row in self.rows if row.part == ALL)

    def raw(self, cell: Cell, arm: str) -> tuple[Path, ...]:
        """The folders with what each run of an arm left."""
        repetitions = sorted(one.repetition for one in self.done if one.cell == cell.name)
        return tuple(raw_folder(self.folder, cell) / run_name(arm, number) for number in repetitions)

    def records(self, cell: Cell, arm: str) -> tuple[Path, ...]:
        """The daemon's, as far as there are any."""
        found = (folder.with_name(f"{folder.name}.jsonl") for folder in self.raw(cell, arm))
        return tuple(file for file in found if file.exists())


_CONDITIONS = TypeAdapter(Conditions)


def store_in(folder: Path) -> Store[Experiment]:
    """The folder as a place for blocks."""
    return Store(folder, Experiment)


def raw_folder(folder: Path, cell: Cell) -> Path:
    """Where the runs of a cell leave what they have: a folder each, and the daemon's record."""
    return folder / "raw" / cell.name


def note(folder: Path, conditions: Conditions) -> None:
    """Keep what this start found."""
    (folder / CONDITIONS).write_text(json.dumps(asdict(conditions), indent=1) + "\n", encoding="utf-8")


def read(folder: Path) -> Results:
    """Everything. Refuses a folder that holds no results."""
    store = store_in(folder)
    asked = store.asked()
    if asked is None:
        raise Refusal(ExitStatus.USAGE, f"{folder}: holds no results: give their folder")
    file = folder / CONDITIONS
    conditions = _CONDITIONS.validate_json(file.read_bytes()) if file.exists() else Conditions()
    done = store.done()
    cells = cells_of(asked.wish, asked.wish.cores, DRIVERS, {}).possible
    return Results(folder, asked, conditions, done, tuple(_rows(asked.wish, cells, done)))


def _rows(experiment: Experiment, cells: Iterable[Cell], done: Sequence[Done]) -> Iterator[Row[Cell]]:
    for cell in cells:
        arms = arms_of(experiment, cell)
        parts = (ALL, *cell.parts) if len(cell.parts) > 1 else (ALL,)
        for part in parts:
            blocks = tuple(_part(one, cell, part) for one in done if one.cell == cell.name)
            summary = summarise(cell, blocks, arms)
            if summary:
                yield Row(part, summary, tuple(sorted(blocks, key=lambda one: one.repetition)))


def _part(done: Done, cell: Cell, part: str) -> Done:
    """The block with the instances of one workload only."""
    names = {one.name for one in cell.instances if part in (ALL, one.workload.called)}
    return replace(done, runs=tuple(_only(run, names) for run in done.runs))


def _only(run: RunResult, names: set[str]) -> RunResult:
    return replace(run, tenants=tuple(one for one in run.tenants if one.name in names))
