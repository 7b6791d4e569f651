"""`make scx-cookies`: core scheduling (PR_SCHED_CORE) beside our scheduler, on two cores of two CPUs each.

python -m tests.vm.scx_cookies --seconds 4
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import click

from guests.built import REPOSITORY, sched_ext_image
from guests.qemu import counting_qemu
from guests.throw_away import TURNS, CgroupLayout, GuestKernel, run_in_guest

CORES, THREADS = 2, 2
CLOCK = ("-icount", "shift=2", "-rtc", "clock=vm")
"""250 million instructions a second of all CPUs: one of them handles an interrupt in some microseconds, and a
busy host that gives the guest no time stops its clock."""

TIMEOUT_S = 3600
TAIL = 100


@click.command()
@click.option("--seconds", type=float, default=4, show_default=True, help="Of each measurement.")
@click.option("--scene", "scenes", multiple=True, help="Of tests/sched_ext/cookies.py; by default all.")
def command(seconds: float, scenes: tuple[str, ...]) -> None:
    """Build, boot, and print what was measured."""
    named = " ".join(f"'{scene}'" for scene in scenes)
    job = (
        f"cd {REPOSITORY} && .venv/bin/python -m tests.sched_ext.cookies {seconds:g} {named}; status=$?;"
        f" dmesg --level warn,err,crit,alert,emerg | tail -n {TAIL} | cut -c 1-200; exit $status"
    )
    topology = ("-smp", f"sockets=1,cores={CORES},threads={THREADS}")
    machine = (*counting_qemu().command(), "-accel", TURNS, *CLOCK, *topology)
    kernel = GuestKernel("cookies", sched_ext_image("--cookies"), ())
    with tempfile.TemporaryDirectory() as scratch:
        where = CgroupLayout.V2, job, Path(scratch), TIMEOUT_S
        run = run_in_guest(kernel, *where, machine=machine, cpus=CORES * THREADS)
    click.echo(run.console.strip())
    sys.exit(run.exit_status != 0)


if __name__ == "__main__":
    command()
