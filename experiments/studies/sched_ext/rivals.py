"""Schedulers of others beside ours: the table and the picture of the kept runs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from dasec.lab.kit.arms import CONTROL, NONE, SCX, rival_of

from ...results.kept_cells import Seen, seen
from ...results.markdown import markdown_table

KEPT = Path(__file__).resolve().parent / "rivals-results"
NAMES = {CONTROL: "plain again", SCX: "ours"}
HEAD = ("scheduler", "mean, p99 ms", "over plain", "worst VM", "background, requests done")


class Ratios(NamedTuple):
    """Mean and p99 over the plain kernel's."""

    mean: float
    p99: float

    def __str__(self) -> str:
        return f"{self.mean:.2f} / {self.p99:.2f}"


class Row(NamedTuple):
    """A scheduler in a cell, over the plain kernel of the same guest."""

    name: str
    seen: Seen
    ratios: Ratios
    worst: Ratios
    """The largest of a VM over the same VM on the plain kernel."""
    background: float
    requests: float


def cells() -> Iterator[tuple[str, list[Row]]]:
    """Every kept cell with its schedulers, ours first, then from the best p99 to the worst."""
    for file in sorted(KEPT.glob("*.jsonl"), key=lambda file: file.stem):
        for block in map(json.loads, file.read_text(encoding="utf-8").splitlines()):
            runs = {run["arm"]: run for run in block["runs"]}
            plain = runs.pop(NONE)
            rows = [_row(plain, arm, run) for arm, run in runs.items()]
            yield file.stem, sorted(rows, key=_place)


def _row(plain: Mapping[str, Any], arm: str, run: Mapping[str, Any]) -> Row:
    base, here = seen(plain), seen(run)
    each = [
        Ratios(now.mean_ms / then.mean_ms, now.p99_ms / then.p99_ms)
        for then, now in zip(_vms(plain), _vms(run), strict=True)
    ]
    return Row(
        NAMES.get(arm) or rival_of(arm)[0],
        here,
        Ratios(here.mean_ms / base.mean_ms, here.p99_ms / base.p99_ms),
        Ratios(max(one.mean for one in each), max(one.p99 for one in each)),
        here.background_cores / base.background_cores,
        here.requests / base.requests,
    )


def _vms(run: Mapping[str, Any]) -> list[Seen]:
    return [seen({"tenants": [vm]}) for vm in run["tenants"]]


def _place(row: Row) -> tuple[int, float]:
    first = list(NAMES.values())
    return (first.index(row.name) if row.name in first else len(first), row.ratios.p99)


def table(rows: Sequence[Row]) -> str:
    """A line for each scheduler."""
    return markdown_table(HEAD, map(_cells_of, rows))


def _cells_of(row: Row) -> list[str]:
    return [
        row.name,
        f"{row.seen.mean_ms:.2f}, {row.seen.p99_ms:.1f}",
        str(row.ratios),
        str(row.worst),
        f"{row.background:.2f}, {row.requests:.2f}",
    ]


def draw(path: Path) -> None:
    """A panel for each cell, bars of mean and p99 for each scheduler."""
    from matplotlib.figure import Figure

    found = list(cells())
    figure = Figure(figsize=(5 * len(found), 4.5), dpi=110, layout="constrained")
    for axis, (cell, rows) in zip(
        figure.subplots(1, len(found), squeeze=False, sharex=True)[0], found, strict=True
    ):
        for shift, colour, which in ((-0.2, "#D55E00", "p99"), (0.2, "#999999", "mean")):
            values = [getattr(row.ratios, which) for row in rows]
            axis.barh([at + shift for at in range(len(rows))], values, 0.38, color=colour, label=which)
        axis.axvline(1, color="#000000", linewidth=0.8)
        axis.set_yticks(range(len(rows)), [row.name for row in rows])
        axis.invert_yaxis()
        axis.set(xlabel="over the plain kernel's", title=cell.replace("-", " "))
    axis.legend()
    figure.savefig(path)
