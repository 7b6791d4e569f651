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
"""What ends a guest that hangs; no assertion is about it. Ten minutes of 64 CPUs take 43 of two cores."""


MOST_COUNTED = 16
"""CPUs. A minute of 64 was not over after 25 minutes of a core: each tick of each ends a turn of all."""

SLOWER = 4
"""How much slower the clock of a guest runs whose CPUs are not counted. With the host's clock 64 CPUs on two
cores made seven groups in a minute; with this one, five in six seconds."""

SLOWS_CLOCKS = Path("/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1")


def computer(cpus: int) -> tuple[str, ...]:
    """The beginning of QEMU's command line for so many CPUs: as many as may be take turns, by a clock of
    instructions; more compute beside each other, by a slow one."""
    qemu = counting_qemu().command()
    if cpus <= MOST_COUNTED:
        return (*qemu, "-accel", TURNS, *clock(cpus))
    if not SLOWS_CLOCKS.exists():
        raise click.ClickException(f"no {SLOWS_CLOCKS}: apt-get install faketime")
    slow = (f"LD_PRELOAD={SLOWS_CLOCKS}", f"FAKETIME=+0 x{1 / SLOWER:g}", "NO_FAKE_STAT=1")
    return ("env", *slow, *qemu, "-accel", "tcg,thread=multi")


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
            where = CgroupLayout.V2, job, Path(scratch), PATIENCE_S
            run = run_in_guest(KERNELS[kernel](), *where, machine=computer(number), cpus=number)
        click.echo("\n".join(run.console.strip().splitlines()[-3 if run.exit_status == 0 else -40 :]))
        failed |= run.exit_status != 0
    sys.exit(failed)


if __name__ == "__main__":
    command()
