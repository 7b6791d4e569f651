"""What validation found, as a picture."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from .validation import SPEED, Validation


def draw(found: Sequence[Validation], path: Path) -> None:
    """Write the PNG: speeds by CPU, wake-ups across CPUs, shares of threads that are free to move."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13, 4), dpi=110, layout="constrained")
    speeds, wakes, shares = figure.subplots(1, 3)
    for one in found:
        label = f"{one.name} CPUs"
        times = one.values(SPEED, "all")
        places = [number / max(1, len(times) - 1) for number in range(len(times))]
        speeds.plot(places, [one.work_ns / time for time in times], ".-", label=label)
        ordered = sorted(one.wakes_us)
        parts = [number / len(ordered) for number in range(1, len(ordered) + 1)]
        wakes.step(ordered, parts, where="post", label=label)
        got = sorted(one.shares)
        shares.plot([number / (len(got) - 1) for number in range(len(got))], got, ".-", label=label)
    speeds.set(title="All CPUs busy", xlabel="CPU, from the first to the last", ylabel="speed / alone")
    speeds.set_ylim(0.9, 1.1)
    wakes.set(title="Wake-up on another CPU", xlabel="µs", ylabel="part of them", xscale="log")
    shares.set(title="Two threads a CPU, after 1.5 s", xlabel="thread, by its share", ylabel="share / due")
    for axes in (speeds, wakes, shares):
        axes.grid(visible=True, color="0.9")
        axes.legend(fontsize=8)
    figure.savefig(path, format="png")
