"""What 10 000 hosts hold at the same p99 with and without us, and what hints add: tables, picture, raw rows.

    python -m experiments.studies.fleet [--hosts 10000] [--seeds 5] [--out experiments/studies/fleet/results]
    python -m experiments.studies.fleet --traces FOLDER --out results/traces

About eight minutes on one core, no root. With --traces the demand is that of recorded days instead. With
--dask tcp://HOST:8786 the fleets are simulated by the workers of that cluster (`pip install distributed`).
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import click

from .capacity import kept
from .curves import (
    PLAIN,
    VM_CORES,
    Curve,
    measured,
    measured_hosts,
    measured_waits,
    other_seeds,
    other_studies,
    waits_seen,
)
from .demand import Demand, VmSource
from .foreseen import foreseen_table
from .jobs import (
    FOLLOWING,
    Done,
    held_jobs,
    held_moving_jobs,
    holdings,
    holdings_moving,
    life_jobs,
    lived,
    spread_at,
)
from .measured_tables import checks_table, hosts_table, waits_table
from .tables import (
    Held,
    HeldMoving,
    Life,
    MadeIn,
    Moved,
    capacity_table,
    held_moving_table,
    moves_table,
    paper_table,
    picture,
)
from .traces import Traces

DEMANDS = {
    "as measured": Demand(VM_CORES),
    "a third of it": Demand(VM_CORES / 3),
    "higher peaks": Demand(VM_CORES, swing=1.0),
    "no day": Demand(VM_CORES, swing=0.0),
    "more noise": Demand(VM_CORES, noise=0.6),
}


def recorded(folder: Path) -> dict[str, VmSource]:
    """The same two sizes of VMs, with the days of that folder."""
    return {
        "as measured": Traces.read(folder, VM_CORES),
        "a third of it": Traces.read(folder, VM_CORES / 3),
    }


def moved(life: Life, curves: Mapping[str, Curve]) -> Iterator[Moved]:
    """What its arm makes of it, or each one."""
    for arm in (life.arm,) if life.arm else FOLLOWING:
        over = 1 - kept(life.lived.busy, curves[arm].most_busy(2 * curves[PLAIN].alone_ms))
        moves = len(life.lived.moves)
        yield Moved(life.vms, life.start, life.arm is not None, arm, life.seed, over, moves)


def _write(path: Path, kind: type[NamedTuple], rows: Iterable[tuple[object, ...]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(kind._fields)
        writer.writerows(
            [round(each, 5) if isinstance(each, float) else each for each in row] for row in rows
        )


def _shown(label: str, jobs: Sequence[object], done: Iterable[Done]) -> Iterator[Done]:
    with click.progressbar(done, length=len(jobs), label=label, file=sys.stderr) as bar:
        yield from bar


@click.command()
@click.option("--hosts", type=click.IntRange(2, 100_000), default=10_000, show_default=True)
@click.option("--seeds", type=click.IntRange(1, 100), default=5, show_default=True)
@click.option(
    "--out", type=click.Path(path_type=Path, file_okay=False), default=Path(__file__).parent / "results"
)
@click.option(
    "--traces",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="A folder of recorded days, a file for each VM.",
)
@click.option("--dask", metavar="URL", help="The scheduler of a Dask cluster that does the work.")
def command(hosts: int, seeds: int, out: Path, traces: Path | None, dask: str | None) -> None:
    """Simulate, and write the results."""
    demands: Mapping[str, VmSource] = DEMANDS if traces is None else recorded(traces)
    curves, waits = measured(), measured_waits()
    out.mkdir(parents=True, exist_ok=True)
    with spread_at(dask) as spread:
        large, small = held_jobs(demands, curves, hosts, seeds), life_jobs(demands, waits, seeds)
        held = [
            row for rows in _shown("what hosts hold", large, spread.each(holdings, large)) for row in rows
        ]
        moving = held_moving_jobs(demands, curves, waits, seeds)
        held_moving = [
            row
            for rows in _shown("what hosts hold with hints", moving, spread.each(holdings_moving, moving))
            for row in rows
        ]
        lives = list(_shown("what hints add", small, spread.each(lived, small)))
    moves = [row for life in lives for row in moved(life, curves)]
    _write(out / "held.csv", Held, held)
    _write(out / "held_moving.csv", HeldMoving, held_moving)
    _write(out / "moved.csv", Moved, moves)
    _write(out / "made.csv", MadeIn, (row for life in lives for row in life.made()))
    picture(curves, held, out / "figure.png")
    tables = [
        hosts_table(measured_hosts(), other_seeds()),
        waits_table(waits_seen()),
        foreseen_table(waits),
        checks_table(other_studies()),
        capacity_table(held),
        held_moving_table(held_moving),
        moves_table(moves),
    ]
    if traces is None:
        tables.append(paper_table(held, DEMANDS, curves))
    click.echo("\n\n".join(tables))


if __name__ == "__main__":
    command()
