"""The result as a picture."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from .analysis import ALLOWED, Entitled

PICTURE = "fairness.png"
ROW_INCHES = 0.27


def draw(found: Sequence[Entitled], folder: Path) -> str:
    """A line for each workload: what it got of its entitlement, with its interval; the file's name."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 1.5 + ROW_INCHES * len(found)), dpi=110, layout="constrained")
    axes = figure.subplots()
    for row, one in enumerate(found):
        for offset, of, colour in (
            (0.25, one.control, "0.6"),
            (0, one.policy, "tab:blue"),
            (-0.25, one.due, "tab:red"),
        ):
            axes.plot([of.low, of.high], [row + offset] * 2, color=colour, linewidth=2)
            axes.plot(of.ratio, row + offset, "o", color=colour, markersize=4)
    axes.axvspan(1 - ALLOWED, 1 + ALLOWED, color="tab:green", alpha=0.15)
    axes.set_yticks(range(len(found)), [f"{one.contest}: {one.workload} ({one.layout})" for one in found])
    axes.invert_yaxis()
    axes.set_xlabel(
        "CPU time; blue: to the plain host, grey: plain host to itself, red: to what is due, green: 2 %"
    )
    figure.savefig(folder / PICTURE)
    return PICTURE
