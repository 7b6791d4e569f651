"""What 10 000 hosts hold at the same p99 with and without us, and what hints add: tables, picture, raw rows.

    python -m experiments.studies.fleet [--hosts 10000] [--seeds 5] [--out experiments/studies/fleet/results]
    python -m experiments.studies.fleet --traces FOLDER --out results/traces

A few minutes on one core, no root. With --traces the demand is that of recorded days instead.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import click

from .capacity import busy_parts, held, kept
from .curves import PLAIN, Curve, checks, measured
from .demand import Demand, VmSource
from .moves import Start, live
from .tables import Held, Life, MadeIn, Moved, capacity_table, checks_table, moves_table, paper_table, picture
from .traces import Traces

LIMITS = (1.5, 2.0, 3.0)
"""Of p99, over that of a VM alone."""

MEASURED_CORES = 1.53
"""What a VM of the measured runs used (curves.SWEEP, ratio 1)."""

DEMANDS = {
    "as measured": Demand(MEASURED_CORES),
    "a third of it": Demand(MEASURED_CORES / 3),
    "higher peaks": Demand(MEASURED_CORES, swing=1.0),
    "no day": Demand(MEASURED_CORES, swing=0.0),
    "more noise": Demand(MEASURED_CORES, noise=0.6),
}

ENOUGH = 0.9
"""Below that part of kept hours no more VMs need be tried: capacity.KEPT is above it."""

MOVED_HOSTS, MOVED_DAYS = 100, 3
MOVED_VMS = {"as measured": 3, "a third of it": 14}
"""VMs a host, by demand: crowded on EEVDF."""


def recorded(folder: Path) -> dict[str, VmSource]:
    """The same two sizes of VMs, with the days of that folder."""
    return {
        "as measured": Traces.read(folder, MEASURED_CORES),
        "a third of it": Traces.read(folder, MEASURED_CORES / 3),
    }


def all_held(
    demands: Mapping[str, VmSource], curves: Mapping[str, Curve], hosts: int, seeds: int
) -> Iterator[Held]:
    """Every demand, seed, limit and arm."""
    alone_ms = curves[PLAIN].alone_ms
    most = max(curve.most_busy(LIMITS[-1] * alone_ms) for curve in curves.values())
    for name, demand in demands.items():
        for seed in range(seeds):
            busy_at = {1: busy_parts(demand, hosts, 1, seed)}
            while kept(busy_at[len(busy_at)], most) > ENOUGH:
                busy_at[len(busy_at) + 1] = busy_parts(demand, hosts, len(busy_at) + 1, seed)
            for limit in LIMITS:
                for arm, curve in curves.items():
                    yield Held(name, limit, arm, seed, held(busy_at, curve, limit * alone_ms))


def all_lived(demands: Mapping[str, VmSource], seeds: int) -> Iterator[Life]:
    """Every size of VMs, placement, with hints and without, and seed."""
    for name, each in MOVED_VMS.items():
        for start in Start:
            for hints in (False, True):
                for seed in range(seeds):
                    lived = live(demands[name], MOVED_HOSTS, each, start, MOVED_DAYS, seed, hints=hints)
                    yield Life(f"{each} {name}", start.value, hints, seed, lived)


def moved(life: Life, curves: Mapping[str, Curve]) -> Iterator[Moved]:
    """What each arm makes of it."""
    for arm, curve in curves.items():
        over = 1 - kept(life.lived.busy, curve.most_busy(2 * curves[PLAIN].alone_ms))
        yield Moved(*life[:3], arm, life.seed, over, len(life.lived.moves))


def _write(path: Path, kind: type[NamedTuple], rows: Iterable[tuple[object, ...]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(kind._fields)
        writer.writerows(
            [round(each, 5) if isinstance(each, float) else each for each in row] for row in rows
        )


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
def command(hosts: int, seeds: int, out: Path, traces: Path | None) -> None:
    """Simulate, and write the results."""
    demands: Mapping[str, VmSource] = DEMANDS if traces is None else recorded(traces)
    curves = {arm: Curve.through(points) for arm, points in measured().items()}
    out.mkdir(parents=True, exist_ok=True)
    with click.progressbar(
        all_held(demands, curves, hosts, seeds),
        length=len(demands) * seeds * len(LIMITS) * len(curves),
        label="what hosts hold",
        file=sys.stderr,
    ) as bar:
        holdings = list(bar)
    with click.progressbar(
        all_lived(demands, seeds),
        length=len(MOVED_VMS) * len(Start) * 2 * seeds,
        label="what hints add",
        file=sys.stderr,
    ) as bar:
        lives = list(bar)
    moves = [row for life in lives for row in moved(life, curves)]
    _write(out / "held.csv", Held, holdings)
    _write(out / "moved.csv", Moved, moves)
    _write(out / "made.csv", MadeIn, (row for life in lives for row in life.made()))
    picture(curves, holdings, out / "figure.png")
    tables = [checks_table(checks()), capacity_table(holdings), moves_table(moves)]
    if traces is None:
        tables.append(paper_table(holdings, DEMANDS, curves))
    click.echo("\n\n".join(tables))


if __name__ == "__main__":
    command()
