"""What contests for CPU time say: how far below its due the worst VM of each is, as a table and a picture."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from ...results.markdown import markdown_table

GRAIN_S = 0.008
"""Time is given out in slices: two of them are no shortfall."""

MOST_SHORT = 0.02


class Contest(NamedTuple):
    """CPUs that each VM got and was due, in so many seconds."""

    name: str
    got: tuple[float, ...]
    due: tuple[float, ...]

    def ratios(self) -> Iterator[float]:
        """What each VM got of what was due to it."""
        for got, due in zip(self.got, self.due, strict=True):
            yield got / due

    def shortfall(self, seconds: float) -> float:
        """What the worst-off VM lacks, as a part of what was due to it."""
        return max((due - got - GRAIN_S / seconds) / due for got, due in zip(self.got, self.due, strict=True))


def table(contests: Sequence[Contest], seconds: float, most: int = 10) -> str:
    """The worst of them first."""
    worst = sorted(contests, key=lambda one: -one.shortfall(seconds))[:most]
    rows = [
        [
            f"`{one.name}`",
            " : ".join(f"{due:.3f}" for due in one.due),
            " : ".join(f"{got:.3f}" for got in one.got),
            f"{max(0.0, one.shortfall(seconds)):.1%}",
        ]
        for one in worst
    ]
    return markdown_table(["contest", "due, CPUs", "got", "short"], rows)


def summary(contests: Sequence[Contest], seconds: float) -> str:
    """How many keep every VM within the bound."""
    kept = sum(one.shortfall(seconds) <= MOST_SHORT for one in contests)
    return (
        f"{len(contests)} contests of {seconds:g} s: in {kept} every VM is within {MOST_SHORT:.0%} of its due"
    )


def draw(contests: Sequence[Contest], seconds: float, path: Path) -> None:
    """A dot for each VM: what was due, and what it got of that. Below the line it is short by more than the
    bound and the grain."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 4.2), dpi=110, layout="constrained")
    axis = figure.subplots()
    dots = [(due, ratio) for one in contests for due, ratio in zip(one.due, one.ratios(), strict=True)]
    axis.scatter([due for due, _ in dots], [ratio for _, ratio in dots], s=16, color="#0072B2")
    dues = sorted(due for due, _ in dots)
    axis.plot(dues, [1 - MOST_SHORT - GRAIN_S / seconds / due for due in dues], color="#D55E00", linewidth=1)
    axis.axhline(1, color="0.5", linewidth=0.8)
    axis.set(xscale="log", xlabel="due to the VM, CPUs", ylabel="got of it", title=summary(contests, seconds))
    figure.savefig(path)
