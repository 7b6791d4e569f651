"""The cost of a period over the number of vCPUs, as a picture."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from .overhead import Overhead


def draw(results: Sequence[Overhead], path: Path) -> None:
    """Two panels on logarithmic axes: CPU, and the length of a look's work."""
    from matplotlib import ticker
    from matplotlib.figure import Figure

    sizes = [result.vcpus for result in results]
    figure = Figure(figsize=(10, 4), layout="constrained")
    cpu, length = figure.subplots(1, 2)
    cpu.plot(sizes, [result.cpu_percent_of_one_core for result in results], "o-")
    cpu.set_ylabel("CPU of the daemon, % of one core")
    length.plot(sizes, [result.period_p99_ms for result in results], "o-", label="p99")
    length.plot(sizes, [result.period_mean_ms for result in results], "s--", label="mean")
    length.set_ylabel("work of a look, ms")
    length.legend()
    for axes in (cpu, length):
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.set_xticks(sizes, [str(size) for size in sizes])
        axes.yaxis.set_major_formatter(ticker.FormatStrFormatter("%g"))
        axes.yaxis.set_minor_formatter(ticker.NullFormatter())
        axes.set_xlabel("vCPUs")
        axes.grid(visible=True, which="both", alpha=0.3)
    figure.suptitle("dasec bench overhead: periods of 80 ms, host 30 % busy")
    figure.savefig(path, dpi=120, format="png")
