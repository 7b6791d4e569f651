"""Does every VM get its share, whoever else is there? Random contests in deterministic guests.

python -m experiments.studies.sched_ext.shares --scripts 200 --out results/scx-shares
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
from .fairness import Contest, draw, summary, table
from .scripts import script

STUDY = "experiments.studies.sched_ext"
INSIDE = Inside(f"{STUDY}.contest", imports=(f"{STUDY}.scripts",))
CPUS, MIPS, TURN = 2, 200, 5000
"""A slow machine, where the kernel's own work weighs more: five seconds of it are five of a real core."""

SCRIPTS_A_GUEST = 4
"""What was done is kept when its guest ends."""


def machine(scratch: Path, cpus: Cpus) -> Machine:
    """What the contests run in. Refuses where the host has no way to get it."""
    return or_refuse(
        lambda: make_machine(scratch, lambda: kernel_for(SCHED_EXT, cpus), INSIDE, cpus, isolated=False)
    )


def task(scheduler: str, seconds: float, cpus: Cpus, seeds: Sequence[int]) -> Task:
    """These contests in one guest, one after the other."""
    word = ",".join(map(str, (scheduler, seconds, cpus.services, *seeds)))
    return Task(f"{scheduler} {seeds[0]} to {seeds[-1]}", word, len(seeds))


def contests(kept: Path) -> list[Contest]:
    """Those that are kept."""
    if not kept.exists():
        return []
    return [contest(json.loads(line)) for line in kept.read_text(encoding="utf-8").splitlines()]


def contest(run: Run) -> Contest:
    """As the guest tells it."""
    return Contest(str(run["name"]), _cpus(run["got"]), _cpus(run["due"]))


def _cpus(told: object) -> tuple[float, ...]:
    assert isinstance(told, list)
    return tuple(map(float, told))


@click.command()
@click.option("--scripts", type=click.IntRange(1), default=200)
@click.option("--seed", type=int, default=1, help="The first; each script has the next.")
@click.option("--seconds", type=float, default=5.0)
@click.option("--scheduler", type=click.Choice(("dasec", "eevdf")), default="dasec")
@click.option("--guests", type=click.IntRange(1), default=2)
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), required=True)
def command(scripts: int, seed: int, seconds: float, scheduler: str, guests: int, out: Path) -> None:
    """Random contests; a line for each in SCHEDULER.jsonl, the worst of them on the screen, and a picture.
    Those that are there already are not run again."""
    cpus = Cpus(CPUS, MIPS, TURN)
    kept = out / f"{scheduler}.jsonl"
    there = {one.name for one in contests(kept)}
    seeds = [one for one in range(seed, seed + scripts) if script(one).name not in there]
    tasks = [
        task(scheduler, seconds, cpus, seeds[at : at + SCRIPTS_A_GUEST])
        for at in range(0, len(seeds), SCRIPTS_A_GUEST)
    ]

    def keep(_: Task, told: Told) -> None:
        with kept.open("a", encoding="utf-8") as stream:
            stream.writelines(json.dumps(run) + "\n" for run in told.runs)

    failures = measure_all(machine(out / "guest", cpus), tasks, guests, keep) if tasks else []
    found = contests(kept)
    if found:
        click.echo(f"{table(found, seconds)}\n\n{summary(found, seconds)}")
        draw(found, seconds, out / f"{scheduler}.png")
    if failures:
        raise SystemExit("\n".join(failures))


if __name__ == "__main__":
    command()
