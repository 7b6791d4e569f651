"""The table and the picture of docs/overhead.md: settling before and after the budget of 0.1 % of all cores.

python -m experiments.studies.settling
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import click

from dasec.budget import LEAST_PERCENT, default_percent

from .model import LOOK_NS, MS, PERIOD_NS, Step, steps

PICTURE = Path(__file__).resolve().parents[3] / "docs/settling.png"
CORES = {16: 5, 64: 20, 256: 80}
"""As many vCPUs a core as on the host of 80 cores and 256 vCPUs that issue and budget.py speak of."""

CALM_NS, ON_NS, OFF_NS = 60_000 * MS, 4_000 * MS, 6_000 * MS
NUMBER = 40
SHIFT_NS = 17 * MS
"""Each step comes so much later in its period than the one before: every phase is met."""


@cache
def measured(vcpus: int, percent: float) -> tuple[Step, ...]:
    """A minute of calm, and then a step every ten seconds."""
    begins = [CALM_NS + number * (ON_NS + OFF_NS + SHIFT_NS) for number in range(NUMBER)]
    return tuple(steps(vcpus, CORES[vcpus], percent, [(begin, begin + ON_NS) for begin in begins]))


def periods(found: Sequence[Step]) -> tuple[float, float, int]:
    """Median and longest time until a step is answered, in periods, and how many never were."""
    each = [step.settled_ns for step in found]
    settled = [time_ns / PERIOD_NS for time_ns in each if time_ns is not None]
    return statistics.median(settled), max(settled), each.count(None)


def table() -> list[str]:
    """A line each for a number of vCPUs and a budget."""
    lines = [
        "| vCPUs on cores | budget, % of one core | first step, periods | later steps: median | longest"
        " | not in 4 s |",
        "|---|---|---|---|---|---|",
    ]
    for vcpus, cores in CORES.items():
        for name, percent in (("before", LEAST_PERCENT), ("now", default_percent(cores))):
            first, *later = measured(vcpus, percent)
            (at_once, _, _), (median, longest, never) = periods([first]), periods(later)
            numbers = f"{at_once:.1f} | {median:.1f} | {longest:.1f} | {never} of {len(later)}"
            lines.append(f"| {vcpus} on {cores} | {name}: {percent:g} | {numbers} |")
    return lines


def draw(path: Path) -> None:
    """How many steps have been answered after how many periods."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 3), layout="constrained")
    all_axes = figure.subplots(1, len(CORES), sharey=True)
    for axes, (vcpus, cores) in zip(all_axes, CORES.items(), strict=True):
        for name, percent in (("before", LEAST_PERCENT), ("now", default_percent(cores))):
            later = measured(vcpus, percent)[1:]
            at = sorted(step.settled_ns / PERIOD_NS for step in later if step.settled_ns is not None)
            share = [100 * (number + 1) / len(later) for number in range(len(at))]
            axes.step([0, *at], [0, *share], where="post", label=f"{name}: {percent:g} % of a core")
        axes.axvline(25, color="grey", linestyle=":", linewidth=1)
        axes.set(title=f"{vcpus} vCPUs on {cores} cores", xlabel="periods after the step", xlim=(0, 30))
        axes.legend(loc="lower right", fontsize=8)
    all_axes[0].set_ylabel("steps answered, %")
    figure.savefig(path, dpi=110, metadata={"Software": None})


@click.command()
def command() -> None:
    """Print the table, and draw the picture."""
    assert CORES.keys() == LOOK_NS.keys()
    click.echo("\n".join(table()))
    draw(PICTURE)


if __name__ == "__main__":
    command()
