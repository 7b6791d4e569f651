"""What a wake-up costs on our scheduler: instructions, against the kernel's own.

    python -m experiments.studies.sched_ext.wakeups OUT
    python -m experiments.studies.sched_ext.wakeups OUT --set watched

A counted guest for each number of CPUs; the lines that they say are kept in OUT. The second: what it costs
beside that to follow all threads by the daemon's monitor.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import click

from ...places.counted.batch import measure_all
from ...places.counted.cpus import Cpus
from ...places.counted.image import Inside
from ...places.counted.kernels import SCHED_EXT, kernel_for, or_refuse
from ...places.counted.machine import Machine, Run, Task, Told, make_machine
from ...results.markdown import markdown_table
from .pairs import EEVDF, OURS, SCENES, SETS

STUDY = "experiments.studies.sched_ext"
INSIDE = Inside(f"{STUDY}.pairs", imports=(f"{STUDY}.contest", f"{STUDY}.scripts"))
CPUS = (2,)
MIPS, TURN = 200, 500
"""A CPU that waits for a lock of another spins until its turn ends. Before decision 0088 two CPUs had 21 700
in the dearest scene with turns of 5000, not 18 300; 16 CPUs 53 900, not 40 800."""

SECONDS = 0.3
WAKEUPS_A_ROUND = 2
NAMES = {"plain": "wakeups", "watched": "watched"}
"""Of what is kept."""


@click.command()
@click.argument("out", type=click.Path(path_type=Path, file_okay=False))
@click.option("--cpus", type=click.IntRange(1), multiple=True, default=CPUS, show_default=True)
@click.option("--turn", type=click.IntRange(100), default=TURN, show_default=True, help="Instructions.")
@click.option("--seconds", type=float, default=SECONDS, show_default=True, help="Of the guest, a scene.")
@click.option("--set", "which", type=click.Choice(list(SETS)), default="plain", show_default=True)
def command(out: Path, cpus: Sequence[int], turn: int, seconds: float, which: str) -> None:
    """Run the guests, keep what they say, and print the table."""
    out.mkdir(parents=True, exist_ok=True)
    failures = []
    kept = out / f"{NAMES[which]}.jsonl"
    for number in cpus:
        size = Cpus(number, MIPS, turn)
        task = Task(f"{number} CPUs", f"{seconds},{number},{which}", len(SETS[which]) * len(SCENES))
        failures += measure_all(_machine(out / "guest", size), [task], 1, partial(_keep, kept, number))
    if kept.exists():
        runs = runs_in(kept)
        click.echo(table(runs))
        draw(runs, kept.with_suffix(".png"))
    if failures:
        raise SystemExit("\n".join(failures))


def _machine(scratch: Path, size: Cpus) -> Machine:
    return or_refuse(
        lambda: make_machine(scratch, lambda: kernel_for(SCHED_EXT, size), INSIDE, size, isolated=False)
    )


def _keep(kept: Path, cpus: int, _: Task, told: Told) -> None:
    with kept.open("a", encoding="utf-8") as stream:
        stream.writelines(f"{json.dumps({'cpus': cpus, **run})}\n" for run in told.runs)


def runs_in(kept: Path) -> list[Run]:
    """Those that are kept."""
    return [json.loads(line) for line in kept.read_text(encoding="utf-8").splitlines()]


def instructions(run: Run) -> float:
    """Of a wake-up and the change of threads that comes with it, all CPUs that never rested together. What
    the two programs do themselves is in it, the same under each scheduler."""
    busy, seconds, rounds = (float(str(run[key])) for key in ("busy", "seconds", "rounds"))
    return busy * seconds * MIPS * 1e6 / rounds / WAKEUPS_A_ROUND


COLOURS = ("0.55", "0.65", "0.75", "0.85", "#0072B2")
"""Beside ours."""


class Row(NamedTuple):
    """A scene on so many CPUs: the cost under each arm."""

    cpus: int
    scene: str
    costs: dict[str, float]

    @property
    def ratio(self) -> float:
        """Ours over EEVDF's."""
        return self.costs[OURS] / self.costs[EEVDF]


def rows(runs: Sequence[Run]) -> list[Row]:
    """In the order of the runs."""
    found: dict[tuple[int, str], dict[str, float]] = {}
    for run in runs:
        costs = found.setdefault((int(str(run["cpus"])), str(run["scene"])), {})
        costs[str(run["arm"])] = instructions(run)
    return [Row(*key, costs) for key, costs in found.items()]


def table(runs: Sequence[Run]) -> str:
    """A line for each scene and number of CPUs."""
    found = rows(runs)
    lines = [
        [
            str(row.cpus),
            row.scene,
            *(f"{cost:.0f}" for cost in row.costs.values()),
            f"{row.ratio:.2f}",
        ]
        for row in found
    ]
    return markdown_table(["CPUs", "who wakes each other", *found[0].costs, "ours over EEVDF's"], lines)


def draw(runs: Sequence[Run], path: Path) -> None:
    """A group of bars for each line of the table."""
    from matplotlib.figure import Figure

    found = rows(runs)
    figure = Figure(figsize=(8, 0.5 * len(found) + 1.2), dpi=110, layout="constrained")
    axis = figure.subplots()
    arms = list(found[0].costs)
    height = 0.8 / len(arms)
    for number, arm in enumerate(arms):
        places = [at + (number - len(arms) // 2) * height for at in range(len(found))]
        colour = COLOURS[number % len(COLOURS)] if arm != OURS else "#D55E00"
        axis.barh(places, [row.costs[arm] for row in found], height, label=arm, color=colour)
    axis.set_yticks(range(len(found)), [f"{row.cpus} CPUs, {row.scene}" for row in found])
    axis.invert_yaxis()
    axis.set(xlabel="instructions of a wake-up and the change of threads")
    axis.legend()
    figure.savefig(path)


if __name__ == "__main__":
    command()
