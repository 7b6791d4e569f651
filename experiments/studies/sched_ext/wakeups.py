"""What a wake-up costs on our scheduler, on few CPUs and on many: instructions, against the kernel's own.

    python -m experiments.studies.sched_ext.wakeups OUT

A counted guest for each number of CPUs; the lines that they say are kept in OUT.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from ...places.counted.batch import measure_all
from ...places.counted.cpus import Cpus
from ...places.counted.image import Inside
from ...places.counted.kernels import SCHED_EXT, kernel_for, or_refuse
from ...places.counted.machine import Run, Task, Told, make_machine
from ...results.markdown import markdown_table
from .pairs import ARMS, OURS, SCENES

STUDY = "experiments.studies.sched_ext"
INSIDE = Inside(f"{STUDY}.pairs", imports=(f"{STUDY}.contest", f"{STUDY}.scripts"))
CPUS = (2, 16, 80)
MIPS, TURN = 200, 500
"""Turns are short: a CPU that waits for a lock of another spins until its turn ends."""
SECONDS = 0.3
KEPT = "wakeups.jsonl"
WAKEUPS_A_ROUND = 2


@click.command()
@click.argument("out", type=click.Path(path_type=Path, file_okay=False))
@click.option("--cpus", type=click.IntRange(1), multiple=True, default=CPUS, show_default=True)
@click.option("--seconds", type=float, default=SECONDS, show_default=True, help="Of the guest, a scene.")
@click.option("--guests", type=click.IntRange(1), default=1, show_default=True, help="At a time.")
def command(out: Path, cpus: Sequence[int], seconds: float, guests: int) -> None:
    """Run the guests, keep what they say, and print the table."""
    out.mkdir(parents=True, exist_ok=True)
    failures = []
    for number in cpus:
        size = Cpus(number, MIPS, TURN)

        def keep(_: Task, told: Told, size: Cpus = size) -> None:
            with (out / KEPT).open("a", encoding="utf-8") as stream:
                stream.writelines(f"{json.dumps({'cpus': size.services, **run})}\n" for run in told.runs)

        machine = or_refuse(
            lambda size=size: make_machine(  # type: ignore[misc]
                out / "guest", lambda: kernel_for(SCHED_EXT, size), INSIDE, size, isolated=False
            )
        )
        task = Task(f"{number} CPUs", f"{seconds},{number}", len(ARMS) * len(SCENES))
        failures += measure_all(machine, [task], guests, keep)
    if (out / KEPT).exists():
        click.echo(table(runs_in(out / KEPT)))
    if failures:
        raise SystemExit("\n".join(failures))


def runs_in(kept: Path) -> list[Run]:
    """Those that are kept."""
    return [json.loads(line) for line in kept.read_text(encoding="utf-8").splitlines()]


def instructions(run: Run) -> float:
    """Of a wake-up and the change of threads that comes with it, all CPUs that never rested together. What
    the two programs do themselves is in it, the same under each scheduler."""
    busy, seconds, rounds = (float(str(run[key])) for key in ("busy", "seconds", "rounds"))
    return busy * seconds * MIPS * 1e6 / rounds / WAKEUPS_A_ROUND


def table(runs: Sequence[Run]) -> str:
    """A row for each scene and number of CPUs."""
    return markdown_table(["CPUs", "who wakes each other", *ARMS, "ours over EEVDF's"], list(_rows(runs)))


def _rows(runs: Sequence[Run]) -> Iterator[list[str]]:
    for cpus in dict.fromkeys(int(str(run["cpus"])) for run in runs):
        for scene in SCENES:
            costs = {
                str(run["arm"]): instructions(run)
                for run in runs
                if (run["cpus"], run["scene"]) == (cpus, scene.name)
            }
            ratio = costs[OURS] / costs[ARMS[0]]
            yield [str(cpus), scene.name, *(f"{costs[arm]:.0f}" for arm in ARMS), f"{ratio:.2f}"]


if __name__ == "__main__":
    command()
