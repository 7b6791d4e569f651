"""The testbed in a few minutes: is the machine as it should be, and does an A/B give the same twice?"""

from __future__ import annotations

from pathlib import Path

import click

from dasec.exits import ExitStatus, Refusal

from ..suite.store import RUNS
from .kernels import PATCHED, TESTBED
from .machine import cpus_for
from .run import read, run
from .validate import validate_all

CPUS_VALIDATED, CPUS_COMPARED = 4, 8
EXPERIMENT = Path(__file__).resolve().parent / "quick.toml"


def quick(guests: int, out: Path) -> None:
    """Both. Refuses a machine that is not as it should be, and two A/Bs that differ."""
    validate_all((cpus_for(CPUS_VALIDATED),), PATCHED, guests, out / "machine")
    experiment = read(EXPERIMENT, CPUS_COMPARED, PATCHED)
    folders = (out / "first", out / "second")
    for folder in folders:
        run(experiment, guests, folder)
    first, second = ((folder / RUNS).read_bytes() for folder in folders)
    if first != second:
        raise Refusal(ExitStatus.FAILED, f"{TESTBED}: two runs differ: compare {RUNS} in {out}/first, second")
    click.echo(f"both runs of the A/B are the same, byte by byte: {len(first)} bytes in {RUNS}")
