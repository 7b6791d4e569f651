"""The testbed's machine as a command."""

from __future__ import annotations

from pathlib import Path

import click

from ...places.counted.cpus import Cpus
from ...places.counted.kernels import KERNELS, PATCHED
from ...places.counted.speed import LONGEST_TURN, SHORTEST_TURN, TURN, cpus_for
from ...places.counted.validate import validate_all
from .quick import quick as run_quick

USUAL = "4,8,16"


@click.group(context_settings={"help_option_names": ["-h", "--help"], "show_default": True})
def command() -> None:
    """A machine of many CPUs in a deterministic guest."""


@command.command()
@click.option("--cpus", default=USUAL, help="For work; one more measures. Several: with commas.")
@click.option("--kernel", type=click.Choice(list(KERNELS)), default=PATCHED, help=f"{KERNELS}")
@click.option("--guests", type=click.IntRange(min=1), default=2, help="At a time, a core of the host each.")
@click.option("--turn", type=click.IntRange(SHORTEST_TURN, LONGEST_TURN), default=TURN, help="Instructions.")
@click.option(
    "--topology", metavar="SOCKETS,CORES,THREADS", help="Their product is CPUs + 1. [default: one socket]"
)
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), required=True)
def validate(cpus: str, kernel: str, guests: int, turn: int, topology: str | None, out: Path) -> None:
    """Measure the machine itself, twice: speeds, wake-ups, gaps, balance, determinism."""
    try:
        counts = tuple(map(int, cpus.split(",")))
    except ValueError:
        counts = ()
    if not counts or min(counts) < 2:
        raise click.UsageError(f"--cpus: {cpus}: give numbers from 2 on, such as {USUAL}")
    machines = [machine_for(count, turn, topology) for count in counts]
    out.mkdir(parents=True, exist_ok=True)
    validate_all(machines, kernel, guests, out)


def machine_for(count: int, turn: int, topology: str | None) -> Cpus:
    """So many CPUs. Refuses a topology that is of another number."""
    if topology is None:
        return cpus_for(count, turn)
    parts = topology.split(",")
    if len(parts) != 3 or not all(part.isdecimal() for part in parts):
        raise click.UsageError(f"--topology: {topology}: give sockets, cores, threads, such as 2,4,2")
    try:
        return cpus_for(count, turn, (int(parts[0]), int(parts[1]), int(parts[2])))
    except ValueError as error:
        raise click.UsageError(f"--topology: {topology}: {error}") from None


@command.command()
@click.option("--guests", type=click.IntRange(min=1), default=2, help="At a time, a core of the host each.")
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), required=True, help="A new folder.")
def quick(guests: int, out: Path) -> None:
    """Validate 4 CPUs, then compare `critical` with the plain kernel on 8, twice: byte-identical."""
    run_quick(guests, out)
