"""A command under a CPU limit, with all CPUs in sight and with only so many: whole runs, timed, in turn."""

from __future__ import annotations

import contextlib
import math
import os
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from ...errors import ExitStatus, Refusal
from ...linux import bandwidth, cgroupfs, cpulist
from ...linux.cgroupfs import Hierarchy
from ...reservations.take import CpuPlace, take
from ...safety.groups import probe_group
from ..kit.errors import undisturbed
from ..kit.ratios import Estimate, robust

PERIOD_US = 100_000
"""The kernel's own, and that of `docker run --cpus`."""

_ENTER = 'echo 0 >"$0" && exec taskset -c "$@"'
"""A shell that enters the group becomes the command: nothing of its start is outside."""


class Attempt(NamedTuple):
    """One amount of CPUs: how long each run took with the limit alone, and with the CPUs limited, too; runs
    of the same number are one pair."""

    cpus: float
    quota_s: tuple[float, ...]
    cpuset_s: tuple[float, ...]

    @property
    def gain(self) -> Estimate:
        """By how much the limit alone is slower: above 1, CPUs of its own help."""
        return robust([alone / own for alone, own in zip(self.quota_s, self.cpuset_s, strict=True)])

    @property
    def prefers_cpuset(self) -> bool:
        """Is it faster with fewer CPUs in sight, by more than chance?"""
        return self.gain.low > 1


def tried(
    command: Sequence[str],
    amounts: Sequence[float],
    pairs: int,
    places: Mapping[int, CpuPlace],
    ran: Callable[[], None],
) -> Iterator[Attempt]:
    """A trial of each amount; `ran` is called after each run. Raises Refusal where the command fails, or the
    host cannot limit it."""
    every_cpu = frozenset(places)
    try:
        with _limited() as (file, members):
            for amount in amounts:
                bandwidth.write_quota(file, f"{round(amount * PERIOD_US)} {PERIOD_US}")
                own = take(every_cpu, math.ceil(amount), places)
                taken: dict[frozenset[int], list[float]] = {every_cpu: [], own: []}
                for pair in range(pairs):
                    for cpus in (every_cpu, own) if pair % 2 else (own, every_cpu):
                        taken[cpus].append(_run(command, cpus, members))
                        ran()
                yield Attempt(amount, tuple(taken[every_cpu]), tuple(taken[own]))
    except OSError as error:
        raise Refusal(ExitStatus.HOST, f"cannot limit a group's CPU time: {error}: run as root") from error


@contextlib.contextmanager
def _limited() -> Iterator[tuple[str, str]]:
    """A group of our own: its quota's file, and the one by which processes enter. It goes with us, or by the
    next `dasec restore`."""
    hierarchy = cgroupfs.find_hierarchy()
    group = f"{hierarchy.root.rstrip('/')}/{probe_group()}"
    directory = hierarchy.directory(group)
    os.mkdir(directory)
    try:
        yield bandwidth.quota_file(hierarchy, group), f"{directory}/cgroup.procs"
    finally:
        _empty(hierarchy, group)


def _empty(hierarchy: Hierarchy, group: str) -> None:
    """What the command left running ends with its group."""
    for tid in hierarchy.members(group):
        _end(tid)
    for _ in range(100):
        if cgroupfs.remove_group(hierarchy.directory(group)):
            return
        time.sleep(0.01)


def _end(tid: int) -> None:
    try:
        os.kill(tid, 9)
    except ProcessLookupError:
        return


def _run(command: Sequence[str], cpus: frozenset[int], members: str) -> float:
    """How long one run takes."""
    arguments = ["sh", "-c", _ENTER, members, cpulist.render(cpus), *command]
    began_s = time.monotonic()
    with contextlib.ExitStack() as stack:
        with undisturbed():
            process = subprocess.Popen(arguments, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
            stack.callback(_kill, process)
        status = process.wait()
        took_s = time.monotonic() - began_s
    if status:
        shown = " ".join(command)
        raise Refusal(
            ExitStatus.FAILED,
            f"{shown}: ended with status {status}: give a command that does its work, then exits 0",
        )
    return took_s


def _kill(process: subprocess.Popen[bytes]) -> None:
    """One that has ended stays as it is."""
    process.kill()
    process.wait()
