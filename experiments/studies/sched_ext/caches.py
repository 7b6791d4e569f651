"""Do threads stay with their caches? How often they change to CPUs of another one, by scheduler.

    python -m experiments.studies.sched_ext.caches OUT

One counted guest with two caches of four CPUs; the lines that it says are kept in OUT.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import click

from ...places.counted.batch import measure_all
from ...places.counted.cpus import Cpus
from ...places.counted.image import Inside
from ...places.counted.kernels import SCHED_EXT, kernel_for, or_refuse
from ...places.counted.machine import Machine, Run, Task, Told, make_machine
from ...results.markdown import markdown_table
from .moves import ARMS, SCENES, scenes_of

STUDY = "experiments.studies.sched_ext"
INSIDE = Inside(f"{STUDY}.moves", imports=(f"{STUDY}.contest", f"{STUDY}.scripts"))
CPUS = Cpus(7, 300, 5000, topology="sockets=2,cores=4")
"""Seven and the one that looks; so fast that it looks each 4 to 10 ms. Each socket has a cache."""

SECONDS = 2.0
KEPT = "caches.jsonl"
COLOURS = ("0.55", "#D55E00", "0.8", "#E69F00", "#9ecae1", "#0072B2")


@click.command()
@click.argument("out", type=click.Path(path_type=Path, file_okay=False))
@click.option("--seconds", type=float, default=SECONDS, show_default=True, help="Of the guest, a scene.")
def command(out: Path, seconds: float) -> None:
    """Run the guest, keep what it says, and print the table."""
    out.mkdir(parents=True, exist_ok=True)
    failures = measure_all(machine(out / "guest"), [task(seconds)], 1, lambda _, told: _keep(out, told))
    if failures:
        raise SystemExit("\n".join(failures))
    runs = runs_in(out / KEPT)
    click.echo(table(runs))
    draw(runs, out / "caches.png")


def machine(scratch: Path) -> Machine:
    """What the threads compute in. Refuses where the host has no way to get it."""
    return or_refuse(
        lambda: make_machine(scratch, lambda: kernel_for(SCHED_EXT, CPUS), INSIDE, CPUS, isolated=False)
    )


def task(seconds: float) -> Task:
    """All arms and scenes."""
    return Task("two caches", f"{seconds},{CPUS.services}", sum(len(scenes_of(arm)) for arm in ARMS))


def _keep(out: Path, told: Told) -> None:
    lines = "".join(f"{json.dumps(run)}\n" for run in told.runs)
    (out / KEPT).write_text(lines, encoding="utf-8")


def runs_in(kept: Path) -> list[Run]:
    """Those that are kept."""
    return [json.loads(line) for line in kept.read_text(encoding="utf-8").splitlines()]


def far_a_second(run: Run) -> float:
    """Changes to a CPU of another cache, of all threads together."""
    return float(str(run["far"])) / float(str(run["seconds"]))


def first_part(run: Run) -> float:
    """Of all looks at all threads, those that saw one on a CPU of the first cache, four of the seven."""
    return float(str(run["first"]))


def table(runs: Sequence[Run]) -> str:
    """A line for each scene and arm."""
    lines = [
        [
            str(run["scene"]),
            str(run["arm"]),
            f"{far_a_second(run):.0f}",
            f"{float(str(run['moves'])) / float(str(run['seconds'])):.0f}",
            f"{float(str(run['least_s'])):.2f} to {float(str(run['most_s'])):.2f}",
            f"{first_part(run):.2f}",
        ]
        for scene in SCENES
        for run in runs
        if run["scene"] == scene.name
    ]
    head = [
        "who computes",
        "scheduler",
        "to another cache, a second",
        "to another CPU",
        "CPU time of a thread, s",
        "part of looks that saw it on the first cache",
    ]
    return markdown_table(head, lines)


def draw(runs: Sequence[Run], path: Path) -> None:
    """A group of bars for each scene."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 3.6), dpi=110, layout="constrained")
    axis = figure.subplots()
    height = 0.8 / len(ARMS)
    for number, (arm, colour) in enumerate(zip(ARMS, COLOURS, strict=True)):
        there = {run["scene"]: run for run in runs if run["arm"] == arm}
        rows = [row for row, scene in enumerate(SCENES) if scene.name in there]
        rates = [far_a_second(there[SCENES[row].name]) for row in rows]
        axis.barh(
            [row + (number - (len(ARMS) - 1) / 2) * height for row in rows],
            rates,
            height,
            label=arm,
            color=colour,
        )
    axis.set_yticks(range(len(SCENES)), [scene.name for scene in SCENES])
    axis.invert_yaxis()
    axis.set(xlabel="changes to another cache a second, all threads")
    axis.legend()
    figure.savefig(path)


if __name__ == "__main__":
    command()
