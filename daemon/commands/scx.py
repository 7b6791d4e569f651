"""`dasec scx`: our sched_ext scheduler in the kernel, as long as this command runs."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import click

from ..bpf.libbpf import BpfUnavailable
from ..bpf.scx import CGROUPS, Scheduler, VmTime, options
from ..errors import ExitStatus, Refusal
from ..linux.printable import printable

LOOK_EVERY_S = 0.5
STOP = {signal.SIGINT, signal.SIGTERM}


def schedule(level: int) -> None:
    """Until a signal. Refuses (status 3) where the kernel does not take it, fails (1) if it puts it out."""
    signal.pthread_sigmask(signal.SIG_BLOCK, STOP)
    again = _until_ended(level, "schedules since now")
    while again:
        again = _until_ended(level, "a CPU came or went: loaded again")
    click.echo("dasec scx: the kernel's own scheduler is back")


def _until_ended(level: int, begun: str) -> bool:
    """One load; whether another is due."""
    try:
        scheduler = Scheduler(options(level))
    except BpfUnavailable as error:
        raise Refusal(ExitStatus.HOST, f"scx: {error}") from error
    with scheduler:
        click.echo(f"dasec scx: {begun}; VMs are the cgroups at depth {level}")
        while (why := scheduler.ended()) is None:
            if signal.sigtimedwait(STOP, LOOK_EVERY_S):
                click.echo("\n".join(map(printable, _shares(scheduler.vms()))))
                return False
        if scheduler.should_restart():
            return True
    raise Refusal(ExitStatus.FAILED, f"scx: the kernel put it out and schedules itself: {printable(why)}")


def _shares(vms: list[VmTime]) -> Iterator[str]:
    """A line for each VM."""
    names = {group.stat().st_ino: str(group.relative_to(CGROUPS)) for group in _groups()}
    yield f"{'CPU, s':>10} {'critical':>9} {'weight':>7}  cgroup"
    for vm in sorted(vms, key=lambda vm: -vm.used_ns):
        part = vm.critical_ns / vm.used_ns if vm.used_ns else 0
        name = names.get(vm.cgroup, "gone") if vm.cgroup else "all others"
        yield f"{vm.used_ns / 1e9:>10.1f} {part:>9.0%} {vm.weight:>7}  {name}"


def _groups() -> Iterator[Path]:
    for path in CGROUPS.rglob("cgroup.procs"):
        if path.parent.exists():
            yield path.parent
