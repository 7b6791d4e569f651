"""`dasec scx`: our sched_ext scheduler in the kernel, as long as this command runs."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path

import click
from rich.console import Console
from rich.live import Live
from rich.text import Text

from .. import log
from ..bpf.libbpf import BpfUnavailable
from ..bpf.scx import CGROUPS, Scheduler, VmTime, groups, no_vms, options, why_not
from ..errors import ExitStatus, Refusal
from ..hosts.host import VM_LEVEL
from ..hosts.sched_ext.limits import LimitWatch
from ..hosts.sched_ext.probe import BACKEND
from ..hosts.sched_ext.rcu import rcu_first
from ..linux.printable import printable
from ..linux.uninterrupted import STOPPERS
from ..service.claim import claimed, kept

LOOK_EVERY_S = 1.0


def schedule(chosen: int | None, directory: Path) -> None:
    """Until a signal. Refuses (status 3) where the kernel does not take it, also when somebody sets a CPU
    limit later; fails (1) if the kernel puts it out."""
    level = VM_LEVEL if chosen is None else chosen
    log.start()
    signal.pthread_sigmask(signal.SIG_BLOCK, STOPPERS)
    with _loaded(level, directory) as (scheduler, stand_by):
        click.echo(f"dasec scx: schedules since now; VMs are the cgroups at depth {level}")
        if lacking := no_vms(level):
            click.echo(printable(f"dasec scx: {lacking}"))
        if not _told(scheduler, stand_by):
            why = scheduler.ended() or "no reason given"
            said = f"scx: the kernel put it out and schedules itself: {printable(why)}"
            raise Refusal(ExitStatus.FAILED, said)
        click.echo("\n".join(map(printable, shares([], scheduler.vms(), names_of()))))
    click.echo("dasec scx: the kernel's own scheduler is back")


def schedule_workloads(file: Path, chosen: int | None, directory: Path) -> None:
    """Only the threads of this configuration's workloads: as a daemon that follows them, and whose policy
    wants nothing. A thread's policy is a knob like others: put back however this ends. `chosen`: a depth of
    VMs instead of the configuration's."""
    from ..config import config as configuration
    from ..service.run import Order, serve

    def read(file: Path) -> configuration.Config:
        told = configuration.load(file)
        level = told.host.vm_level if chosen is None else chosen
        host = told.host.model_copy(update={"backend": BACKEND, "vm_level": level, "partial": True})
        return told.model_copy(update={"policy": "none", "host": host})

    try:
        told = read(file)
    except configuration.ConfigError as error:
        raise Refusal(ExitStatus.USAGE, *error.lines) from error
    if (why := why_not()) is not None:
        raise _refused(why)
    serve(Order(file, told, told.dry_run, None, None, directory, read))


@contextmanager
def _loaded(level: int, directory: Path) -> Iterator[tuple[Scheduler, Callable[[], object]]]:
    """With the whole host, and a keeper, which puts RCU's thread back if we are killed; and what sees to it
    that both keeper and journal are there."""
    announcer = log.Announcer()
    if (why := why_not()) is not None:
        raise _refused(why)
    with claimed(directory) as claim, kept(directory, claim) as keeper:
        try:
            with rcu_first(claim.journal), Scheduler(options(level)) as scheduler:
                yield scheduler, lambda: claim.stands(announcer) and keeper.ensure()
        except BpfUnavailable as error:
            raise _refused(str(error)) from error


def _refused(why: str) -> Refusal:
    return Refusal(ExitStatus.HOST, f"scx: {why}")


def _told(scheduler: Scheduler, stand_by: Callable[[], object]) -> bool:
    """Whether we were told to stop, before the kernel put it out; a terminal shows meanwhile who runs.
    Refuses where somebody sets a CPU limit: who does means it."""
    console = Console()
    before: list[VmTime] = []
    shown = Live(console=console, auto_refresh=False, transient=True) if console.is_terminal else None
    with shown or nullcontext():
        watch = LimitWatch()
        while scheduler.ended() is None:
            if signal.sigtimedwait(STOPPERS, LOOK_EVERY_S):
                return True
            stand_by()
            if (limit := watch.found(time.monotonic_ns())) is not None:
                raise _refused(f"{limit}: the kernel's own scheduler is back, which keeps it")
            if shown is not None:
                now = scheduler.vms()
                lines = fitting([*shares(before, now, names_of())], max(1, console.height - 1))
                shown.update(Text("\n".join(map(printable, lines))), refresh=True)
                before = now
    return False


def shares(before: Sequence[VmTime], now: Sequence[VmTime], names: Mapping[int, str]) -> Iterator[str]:
    """A line for each VM: what it had since `before`, or since the beginning."""
    then = {vm.cgroup: vm for vm in before}
    rows = [(vm, _since(vm, then.get(vm.cgroup))) for vm in now]
    total_ns = sum(used_ns for _, (used_ns, _) in rows) or 1
    yield f"{'CPU, s':>10} {'of all':>7} {'critical':>9} {'weight':>7}  cgroup"
    for vm, (used_ns, critical_ns) in sorted(rows, key=lambda row: -row[1][0]):
        critical = critical_ns / used_ns if used_ns else 0
        name = names.get(vm.cgroup, "gone") if vm.cgroup else "all others"
        yield f"{used_ns / 1e9:>10.1f} {used_ns / total_ns:>7.0%} {critical:>9.0%} {vm.weight:>7}  {name}"


def fitting(lines: Sequence[str], room: int) -> Sequence[str]:
    """So many of them, the last of which says how many are left out."""
    if len(lines) <= room:
        return lines
    return [*lines[: room - 1], f"… {len(lines) - room + 1} more"]


def _since(vm: VmTime, then: VmTime | None) -> tuple[int, int]:
    if then is None or then.used_ns > vm.used_ns:  # its group has been given the cpu controller anew
        return vm.used_ns, vm.critical_ns
    return vm.used_ns - then.used_ns, vm.critical_ns - then.critical_ns


def names_of() -> Mapping[int, str]:
    """The groups by inode number, which is what BPF knows them by."""
    found = {}
    for group in groups():
        with suppress(OSError):
            found[os.stat(f"{CGROUPS}{group}").st_ino] = group[1:]
    return found
