"""Tables of what was measured: the thesis' claim beside ours, and whether ours is where it must be."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median

from .figures import Figure, Row

Said = Mapping[str, object]

COLOURS = ("stock", "series", "config", "slush", "config, slush", "burst, stock")
FAR_APART = 20
"""Times: bars that differ by more are drawn in logarithms."""


def kept(file: Path) -> list[Said]:
    """The runs of a figure on a kernel, as they were written."""
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def values(figure: Figure, runs: Iterable[Said], row: int, arm: str) -> list[float]:
    """The number that the figure is about, of each repeat."""
    return [float(str(run[figure.value])) for run in runs if (run["row"], run["arm"]) == (row, arm)]


def changes(figure: Figure, runs: Sequence[Said], row: int, arm: str) -> list[float]:
    """By how much more each repeat has than under the first arm, in percent."""
    first, above = next(iter(figure.arms)), figure.rows[row].above
    floor = next((at for at, one in enumerate(figure.rows) if one.name == above), None)

    def over_floor(which: str) -> list[float]:
        found = values(figure, runs, row, which)
        base = [0.0] * len(found) if floor is None else values(figure, runs, floor, which)
        return [one - less for one, less in zip(found, base, strict=True)]

    pairs = zip(over_floor(arm), over_floor(first), strict=True)
    return [100 * (one / other - 1) for one, other in pairs]


def verdict(row: Row, arm: str, found: list[float], changed: Sequence[float] = ()) -> str:
    """Whether all of them are in the row's bands; empty: it has none."""
    told = [(row.bands[arm], one) for one in found if arm in row.bands]
    told += [(row.changes[arm], one) for one in changed if arm in row.changes]
    if not told:
        return ""
    return "holds" if all(low <= one <= high for (low, high), one in told) else "does not hold"


def table(figure: Figure, runs: Sequence[Said]) -> Iterator[str]:
    """Markdown: a line for each row and arm."""
    has_changes = any(row.changes for row in figure.rows)
    yield f"| {figure.unit} | | claimed | ours |{' of the first, % |' if has_changes else ''} |"
    yield f"|---|---|---|---|{'---|' if has_changes else ''}---|"
    for index, row in enumerate(figure.rows):
        for arm in figure.arms:
            found = values(figure, runs, index, arm)
            if not found:
                continue
            changed = changes(figure, runs, index, arm) if arm in row.changes else []
            cells = [row.name, arm, row.claims.get(arm, ""), _shown(found)]
            cells += [f"{median(changed):+.1f}" if changed else ""] if has_changes else []
            yield f"| {' | '.join([*cells, verdict(row, arm, found, changed)])} |"


def draw(path: Path, kept_runs: Sequence[tuple[str, Figure, Sequence[Said]]]) -> None:
    """A panel for each figure and kernel: its value by row and arm, the median of the repeats."""
    from matplotlib.figure import Figure

    across = 2
    down = -(-len(kept_runs) // across)
    figure = Figure(figsize=(12, 3.2 * down), dpi=90, layout="constrained")
    axes = figure.subplots(down, across, squeeze=False)
    for axis in axes.flat[len(kept_runs) :]:
        axis.set_axis_off()
    for axis, (kernel, one, runs) in zip(axes.flat, kept_runs, strict=False):
        arms = [arm for arm in one.arms if any(run["arm"] == arm for run in runs)]
        width = 0.8 / len(arms)
        for number, arm in enumerate(arms):
            found = [(row, values(one, runs, row, arm)) for row in range(len(one.rows))]
            there = [(row, median(each)) for row, each in found if each]
            places = [row + (number - (len(arms) - 1) / 2) * width for row, _ in there]
            shown = [value for _, value in there]
            axis.bar(places, shown, 0.93 * width, label=arm, color=f"C{COLOURS.index(arm)}")
            if max(shown) > FAR_APART * min(shown) > 0:
                axis.set_yscale("log")
        names = [row.name for row in one.rows]
        axis.set_xticks(range(len(names)), names, fontsize=6, rotation=20, ha="right")
        axis.set_title(f"{one.name}, Linux {kernel}", fontsize=9)
        axis.set_ylabel(one.unit, fontsize=8)
        axis.legend(fontsize=6)
    figure.savefig(path)


def _shown(found: list[float]) -> str:
    if len(found) == 1:
        return _plain(found[0])
    return f"{_plain(median(found))} ({_plain(min(found))} to {_plain(max(found))})"


def _plain(value: float) -> str:
    return f"{value:.0f}" if value >= 1000 else f"{value:.3g}"
