"""Tables of what was measured: the thesis' claim beside ours, and whether ours is where it must be."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median

from .figures import Figure, Row

Said = Mapping[str, object]


def kept(file: Path) -> list[Said]:
    """The runs of a figure on a kernel, as they were written."""
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def values(figure: Figure, runs: Iterable[Said], row: int, arm: str) -> list[float]:
    """The number that the figure is about, of each repeat."""
    return [float(str(run[figure.value])) for run in runs if (run["row"], run["arm"]) == (row, arm)]


def verdict(row: Row, arm: str, found: list[float]) -> str:
    """Whether all of them are in the row's band; empty: it has none."""
    if arm not in row.bands or not found:
        return ""
    low, high = row.bands[arm]
    return "holds" if all(low <= one <= high for one in found) else "does not hold"


def table(figure: Figure, runs: Sequence[Said]) -> Iterator[str]:
    """Markdown: a line for each row and arm."""
    yield f"| {figure.unit} | | claimed | ours | |"
    yield "|---|---|---|---|---|"
    for index, row in enumerate(figure.rows):
        for arm in figure.arms:
            found = values(figure, runs, index, arm)
            if found:
                claim = row.claims.get(arm, "")
                yield f"| {row.name} | {arm} | {claim} | {_shown(found)} | {verdict(row, arm, found)} |"


def _shown(found: list[float]) -> str:
    if len(found) == 1:
        return f"{found[0]:.4g}"
    return f"{median(found):.3g} ({min(found):.3g} to {max(found):.3g})"
