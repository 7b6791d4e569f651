"""In the guest: VMs contend for its CPUs under our scheduler, or the kernel's own; it tells what each had.

python -m experiments.studies.sched_ext.contest SCHEDULER,SECONDS,CPUS,SEED[,SEED…]

A negative seed is one of SEEN.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NoReturn

from dasec.bpf.scx import CGROUPS, Scheduler, options

from ...places.counted.inside import RUN
from .scripts import SEEN, Actors, Script, Vm, script

SLICE = CGROUPS / "contest.slice"
SETTLE_S = 1.0
LOOP = 20_000
"""Turns of an empty loop between two looks at the clock while it is calibrated."""


def main() -> None:
    """All scripts, one after the other."""
    scheduler, seconds, cpus, *seeds = sys.argv[1].split(",")
    services = set(range(int(cpus)))
    make_room(int(cpus))
    a_ms = turns_a_ms()
    with Scheduler(options(2)) if scheduler == "dasec" else contextlib.nullcontext():
        for seed in map(int, seeds):
            tell(SEEN[-seed - 1] if seed < 0 else script(seed), services, float(seconds), a_ms)


def make_room(services: int) -> None:
    """For groups in SLICE that share by weights. Who looks keeps to the CPU behind those of the services."""
    os.sched_setaffinity(0, {services})
    (CGROUPS / "cgroup.subtree_control").write_text("+cpu")
    SLICE.mkdir()
    (SLICE / "cgroup.subtree_control").write_text("+cpu")


def turns_a_ms() -> float:
    """Turns of burn()'s loop in a millisecond."""
    begin = time.thread_time_ns()
    burn(LOOP)
    return LOOP * 1e6 / (time.thread_time_ns() - begin)


def burn(turns: int) -> None:
    for _ in range(turns):
        pass


def tell(contest: Script, services: set[int], seconds: float, a_ms: float) -> None:
    """Run it; one line."""
    groups = [SLICE / f"vm{number}.scope" for number in range(len(contest.vms))]
    leaders = []
    for group, vm in zip(groups, contest.vms, strict=True):
        group.mkdir()
        (group / "cpu.weight").write_text(str(vm.weight))
        leaders.append(lead(group, vm, {0} if contest.pinned else services, a_ms))
    time.sleep(SETTLE_S)
    before, began = [used_s(group) for group in groups], time.monotonic()
    time.sleep(seconds)
    took = time.monotonic() - began
    got = [(used_s(group) - then) / took for group, then in zip(groups, before, strict=True)]
    for group, leader in zip(groups, leaders, strict=True):
        (group / "cgroup.kill").write_text("1")
        os.waitpid(leader, 0)
        end(group)
    told = {"name": contest.name, "got": got, "due": contest.due(len(services))}
    print(RUN + json.dumps(told), flush=True)


def used_s(group: Path) -> float:
    said = (group / "cpu.stat").read_text().split()
    return int(said[said.index("usage_usec") + 1]) / 1e6


def end(group: Path) -> None:
    while group.exists():
        with contextlib.suppress(OSError):
            group.rmdir()
        time.sleep(0.01)


def lead(group: Path, vm: Vm, cpus: set[int], a_ms: float) -> int:
    """A process in the group that starts the VM's threads and waits."""

    def run() -> NoReturn:
        (group / "cgroup.procs").write_text(str(os.getpid()))
        os.sched_setaffinity(0, cpus)
        for actors in vm.actors:
            start(actors, a_ms)
        while True:
            signal.pause()

    return child(run)


def child(run: Callable[[], object]) -> int:
    pid = os.fork()
    if pid:
        return pid
    try:
        run()
    finally:
        os._exit(0)


def start(actors: Actors, a_ms: float) -> None:
    turns = int(actors.run_ms * a_ms)
    if actors.kind == "faker":
        start_ring(actors.threads, turns)
        return
    begin = time.monotonic() + 0.2
    for number in range(actors.threads):
        if actors.kind == "hog":
            child(hog)
        elif actors.kind == "late":
            child(partial(come_late, actors.sleep_ms / 1000))
        elif actors.kind == "forker":
            child(partial(fork, turns))
        else:
            at = begin if actors.kind == "herd" else begin + 0.001 * number
            child(partial(doze, at, turns, actors.sleep_ms / 1000))


def hog() -> NoReturn:
    while True:
        burn(LOOP)


def come_late(sleep_s: float) -> NoReturn:
    time.sleep(sleep_s)
    hog()


def fork(turns: int) -> NoReturn:
    while True:
        os.waitpid(child(partial(burn, turns)), 0)


def doze(at: float, turns: int, sleep_s: float) -> NoReturn:
    while True:
        time.sleep(max(0.0, at - time.monotonic()))
        burn(turns)
        at = max(at, time.monotonic()) + sleep_s


def start_ring(threads: int, turns: int) -> None:
    pipes = [os.pipe() for _ in range(threads)]

    def pass_on(number: int) -> NoReturn:
        while True:
            os.read(pipes[number][0], 1)
            burn(turns)
            os.write(pipes[(number + 1) % threads][1], b"x")

    for number in range(threads):
        child(partial(pass_on, number))
    for number in range(0, threads, 2):
        os.write(pipes[number][1], b"x")


if __name__ == "__main__":
    main()
