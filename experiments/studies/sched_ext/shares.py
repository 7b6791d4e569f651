"""Does every VM get its share, whoever else is there? Random contests in deterministic guests.

python -m experiments.studies.sched_ext.shares --scripts 200 --out results/scx-shares
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import click

from ...places.counted.batch import measure_all
from ...places.counted.cpus import Cpus
from ...places.counted.image import Inside
from ...places.counted.kernels import SCHED_EXT, kernel_for, or_refuse
from ...places.counted.machine import Machine, Task, Told, make_machine

STUDY = "experiments.studies.sched_ext"
INSIDE = Inside(f"{STUDY}.contest", imports=(f"{STUDY}.scripts",))
CPUS, MIPS, TURN = 2, 200, 5000
"""A slow machine, where the kernel's own work weighs more: five seconds of it are five of a real core."""

SCRIPTS_A_GUEST = 20
GRAIN_S = 0.008
MOST_SHORT = 0.02


def machine(scratch: Path, cpus: Cpus) -> Machine:
    """What the contests run in. Refuses where the host has no way to get it."""
    return or_refuse(
        lambda: make_machine(scratch, lambda: kernel_for(SCHED_EXT, cpus), INSIDE, cpus, isolated=False)
    )


def task(scheduler: str, seconds: float, cpus: Cpus, seeds: Sequence[int]) -> Task:
    """These contests in one guest, one after the other."""
    word = ",".join(map(str, (scheduler, seconds, cpus.services, *seeds)))
    return Task(f"{scheduler} {seeds[0]} to {seeds[-1]}", word, len(seeds))


def ratios(run: Mapping[str, object]) -> Iterator[float]:
    """What each VM got of what was due to it."""
    for got, due in _pairs(run):
        yield got / due


def shortfall(run: Mapping[str, object], seconds: float) -> float:
    """What the worst-off VM lacks, as a part of what was due to it. Time is given out in slices: two of them
    are no shortfall."""
    return max((due - got - GRAIN_S / seconds) / due for got, due in _pairs(run))


def _pairs(run: Mapping[str, object]) -> Iterator[tuple[float, float]]:
    got, due = run["got"], run["due"]
    assert isinstance(got, list)
    assert isinstance(due, list)
    yield from zip(got, due, strict=True)


@click.command()
@click.option("--scripts", type=click.IntRange(1), default=200)
@click.option("--seed", type=int, default=1, help="The first; each script has the next.")
@click.option("--seconds", type=float, default=5.0)
@click.option("--scheduler", type=click.Choice(("dasec", "eevdf")), default="dasec")
@click.option("--guests", type=click.IntRange(1), default=2)
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), required=True)
def command(scripts: int, seed: int, seconds: float, scheduler: str, guests: int, out: Path) -> None:
    """Random contests; a line for each in shares.jsonl, and the worst of them on the screen."""
    cpus = Cpus(CPUS, MIPS, TURN)
    seeds = range(seed, seed + scripts)
    tasks = [
        task(scheduler, seconds, cpus, seeds[at : at + SCRIPTS_A_GUEST])
        for at in range(0, scripts, SCRIPTS_A_GUEST)
    ]
    made = machine(out / "guest", cpus)
    kept = out / f"{scheduler}.jsonl"
    kept.unlink(missing_ok=True)

    def keep(_: Task, told: Told) -> None:
        with kept.open("a", encoding="utf-8") as stream:
            stream.writelines(json.dumps(run) + "\n" for run in told.runs)

    failures = measure_all(made, tasks, guests, keep)
    runs = (
        [json.loads(line) for line in kept.read_text(encoding="utf-8").splitlines()] if kept.exists() else []
    )
    runs.sort(key=lambda run: -shortfall(run, seconds))
    for run in runs[:10]:
        said = ", ".join(f"{one:.3f}" for one in ratios(run))
        click.echo(f"{run['name']}: {said} of what is due; {shortfall(run, seconds):.1%} short")
    short = sum(shortfall(run, seconds) > MOST_SHORT for run in runs)
    click.echo(f"{len(runs)} contests, {short} with a VM more than {MOST_SHORT:.0%} short")
    if failures:
        raise SystemExit("\n".join(failures))


if __name__ == "__main__":
    command()
