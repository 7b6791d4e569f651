"""The figures of the thesis on CFS bandwidth control, and ours, in counted guests.

    python -m experiments.studies.bandwidth run table-4.1 --kernel 6.1
    python -m experiments.studies.bandwidth report

Exit status: 0 done, 1 a guest failed, 2 wrong usage, 3 this machine lacks something.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click

from experiments.places.counted.machine import GuestFailedError, Run
from guests.built import HostCannotError
from guests.qemu import QemuMissingError

from .figures import HERE, Figure, figures
from .figures import Run as Wanted
from .guest import KERNELS, SERIES, machine_of, said_of
from .report import Said, draw, kept, table

RESULTS = HERE / "results"
SCRATCH = HERE.parents[2] / "build/bandwidth"


@click.group()
def command() -> None:
    """Measure a figure, or print what was measured."""


@command.command()
@click.argument("figure", type=click.Choice(list(figures())))
@click.option("--kernel", type=click.Choice(list(KERNELS)), default="6.1", show_default=True)
@click.option("--out", type=click.Path(path_type=Path), default=RESULTS, show_default=True)
def run(figure: str, kernel: str, out: Path) -> None:
    """Measure one figure on one kernel."""
    found = figures()[figure]
    try:
        kept_runs = measured(found, kernel)
    except (HostCannotError, QemuMissingError) as error:
        print(f"bandwidth: {error}", file=sys.stderr)
        sys.exit(3)
    except GuestFailedError as error:
        print(f"bandwidth: {error}", file=sys.stderr)
        sys.exit(1)
    out.mkdir(parents=True, exist_ok=True)
    lines = (json.dumps(one) + "\n" for one in kept_runs)
    (out / f"{figure}-{kernel}.jsonl").write_text("".join(lines), encoding="utf-8")
    print("\n".join(table(found, kept_runs)))


def measured(figure: Figure, kernel: str) -> list[Run]:
    """All runs of the figure. A kernel without the series has only what needs none of it."""
    has_series = kernel in SERIES
    arms = tuple(arm for arm, adds in figure.arms.items() if has_series or adds.startswith("on=0"))
    found: list[Run] = []

    def keep(wanted: Wanted, said: Run) -> None:
        found.append({"row": wanted.row, "arm": wanted.arm, **said})
        print(f"{wanted.word}: {said[figure.value]}", file=sys.stderr)

    said_of(machine_of(kernel, figure.cpus, SCRATCH), figure, list(figure.runs(arms)), keep)
    return found


def all_kept(results: Path) -> list[tuple[str, Figure, list[Said]]]:
    """Every figure that was measured, by kernel."""
    return [
        (kernel, figure, kept(file))
        for figure in figures().values()
        for kernel in KERNELS
        if (file := results / f"{figure.name}-{kernel}.jsonl").exists()
    ]


@command.command()
@click.option("--results", type=click.Path(path_type=Path, exists=True), default=RESULTS, show_default=True)
def report(results: Path) -> None:
    """Print the tables of all that was measured, and draw it."""
    found = all_kept(results)
    for kernel, figure, runs in found:
        print(f"\n### {figure.title} (Linux {kernel})\n")
        print("\n".join(table(figure, runs)))
    draw(results / "figures.png", found)


if __name__ == "__main__":
    command()
