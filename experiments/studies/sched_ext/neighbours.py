"""What workloads that nobody opted in get beside VMs: EEVDF, our scheduler for the whole host, and partial.

    python -m experiments.studies.sched_ext.neighbours OUT

One counted guest of two CPUs and one that measures; the lines that it says are kept in OUT.
"""

from __future__ import annotations

import json
from pathlib import Path

import click

from guests.built import sched_ext_image

from ...places.counted.image import Inside
from ...places.counted.machine import Run, Task, make_machine, measure
from ...places.counted.speed import cpus_for
from .beside import ARMS, SCENES

INSIDE = Inside("experiments.studies.sched_ext.beside")
CPUS = 2
SECONDS = "3"


@click.command()
@click.argument("out", type=click.Path(path_type=Path))
def command(out: Path) -> None:
    """Run the guest, keep what it says, and print the table."""
    machine = make_machine(out / "guest", sched_ext_image, INSIDE, cpus_for(CPUS), isolated=False)
    runs = len(SCENES) * len(ARMS)
    told = measure(machine, Task("neighbours", SECONDS, runs), lambda: click.echo(".", nl=False))
    text = "".join(f"{json.dumps(run)}\n" for run in told.runs)
    (out / "neighbours.jsonl").write_text(text, encoding="utf-8")
    click.echo("\n" + "\n".join(map(line, told.runs)))


def line(run: Run) -> str:
    """A row of the table."""
    cores = run["cores"]
    assert isinstance(cores, dict), "CPU time by group"
    shares = ", ".join(
        f"{name.rpartition('/')[2]} {used / float(SECONDS):.2f}" for name, used in cores.items()
    )
    return f"| {run['scene']} | {run['arm']} | {shares} | {run['done']} | {run['slowest_ms']} |"


if __name__ == "__main__":
    command()
