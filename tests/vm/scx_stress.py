"""`make scx-stress`: the stress of tests/sched_ext in guests of more and more CPUs.

python -m tests.vm.scx_stress --minutes 10 --cpus 2,8,16,64
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import click

from guests.built import REPOSITORY, sched_ext_image
from guests.qemu import counting_qemu
from guests.throw_away import TURNS, CgroupLayout, GuestKernel, newer_kernel, run_in_guest

KERNELS = {"6.12": lambda: GuestKernel("sched_ext", sched_ext_image(), ()), "newer": newer_kernel}
PATIENCE_S = 4 * 3600
"""What ends a guest that hangs; no assertion is about it. Ten minutes of 64 CPUs are 300e9 instructions."""


def clock(cpus: int) -> tuple[str, ...]:
    """Counted instructions, 8 to 31 million in a second for each of so many CPUs: a host that gives the
    guest no time stops its clock, too. Where all CPUs are idle the clock is the host's."""
    shift = max(1, 4 - max(0, (cpus - 1).bit_length() - 2))
    return ("-icount", f"shift={shift}", "-rtc", "clock=vm")


@click.command()
@click.option("--minutes", type=float, default=10, show_default=True, help="In each guest.")
@click.option("--cpus", default="2,8,16,64", show_default=True, help="A guest for each of these.")
@click.option("--kernel", type=click.Choice(list(KERNELS)), default="6.12", show_default=True)
@click.option("--seed", type=int, default=1, show_default=True)
def command(minutes: float, cpus: str, kernel: str, seed: int) -> None:
    """Boot, stress, and say what each guest said."""
    failed = False
    for number in map(int, cpus.split(",")):
        job = f"cd {REPOSITORY} && .venv/bin/python -m tests.sched_ext.stress {minutes * 60:g} {seed}"
        with tempfile.TemporaryDirectory() as scratch:
            machine = (*counting_qemu().command(), "-accel", TURNS, *clock(number))
            where = CgroupLayout.V2, job, Path(scratch), PATIENCE_S
            run = run_in_guest(KERNELS[kernel](), *where, machine=machine, cpus=number)
        click.echo("\n".join(run.console.strip().splitlines()[-3 if run.exit_status == 0 else -40 :]))
        failed |= run.exit_status != 0
    sys.exit(failed)


if __name__ == "__main__":
    command()
