"""The figures as figures.toml has them, and which runs each is made of."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
FIGURES = HERE / "figures.toml"

Band = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a figure: what runs, and by arm what the thesis claims and where ours must be. `changes`:
    where what changes over the first arm must be, in percent; `above`: of what is above that row's."""

    name: str
    run: str
    claims: Mapping[str, str] = field(default_factory=dict)
    bands: Mapping[str, Band] = field(default_factory=dict)
    changes: Mapping[str, Band] = field(default_factory=dict)
    above: str = ""


@dataclass(frozen=True, slots=True)
class Run:
    """One run in a guest: its place in the figure, and the word that the guest is given."""

    row: int
    arm: str
    word: str


@dataclass(frozen=True, slots=True)
class Figure:
    """What is measured on so many CPUs; `value` is the number of each run that it is about."""

    name: str
    title: str
    cpus: int
    value: str
    unit: str
    arms: Mapping[str, str]
    repeats: tuple[str, ...]
    rows: tuple[Row, ...]

    def runs(self, arms: tuple[str, ...] | None = None) -> Iterator[Run]:
        """All of them, or those of these arms."""
        for index, row in enumerate(self.rows):
            for arm, adds in self.arms.items():
                if arms is None or arm in arms:
                    for repeat in self.repeats:
                        yield Run(index, arm, f"{row.run}:{adds}:{repeat}")


def figures(file: Path = FIGURES) -> dict[str, Figure]:
    """All figures by name."""
    table = tomllib.loads(file.read_text(encoding="utf-8"))
    return {one["name"]: _figure(one, table["arms"]) for one in table["figure"]}


def _figure(one: Mapping[str, object], arms: Mapping[str, str]) -> Figure:
    rows, wanted, repeats = one["row"], one["arms"], one["repeats"]
    assert isinstance(rows, list)
    assert isinstance(wanted, list)
    assert isinstance(repeats, list)
    return Figure(
        str(one["name"]),
        str(one["title"]),
        int(str(one["cpus"])),
        str(one["value"]),
        str(one["unit"]),
        {arm: arms[arm] for arm in wanted},
        tuple(repeats),
        tuple(_row(row) for row in rows),
    )


def _row(row: Mapping[str, object]) -> Row:
    claims = row.get("claims", {})
    assert isinstance(claims, dict)
    return Row(
        str(row["name"]),
        str(row["run"]),
        claims,
        _bands(row.get("bands", {})),
        _bands(row.get("changes", {})),
        str(row.get("above", "")),
    )


def _bands(told: object) -> Mapping[str, Band]:
    assert isinstance(told, dict)
    return {arm: (low, high) for arm, (low, high) in told.items()}
