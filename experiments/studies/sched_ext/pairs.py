"""In the guest: pairs of processes that do nothing but wake each other, under our scheduler and the kernel's.

python -m experiments.studies.sched_ext.pairs SECONDS,CPUS,SET

Each arm of that set and each scene is a line of JSON: how many rounds all pairs had meanwhile. A round is two
messages through pipes, so two wake-ups and two changes of the thread that runs.
"""

from __future__ import annotations

import contextlib
import json
import mmap
import os
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NoReturn

from dasec.bpf.extent import Extent
from dasec.bpf.scx import NOTHING, Scheduler, options
from dasec.bpf.wake_edges import BpfEdges
from dasec.linux import procfs
from dasec.model import Level, VcpuId

from ...places.counted.inside import RUN
from .contest import SLICE, child, end, make_room

EEVDF, OURS = "EEVDF", "dasec"


@dataclass(frozen=True, slots=True)
class Arm:
    """A scheduler, and whether all threads are followed by the daemon's monitor of wake-ups, and by which:
    one that traces switches, or the scheduler's own."""

    name: str
    is_ours: bool = False
    traces: bool = False
    counts: bool = False


SETS = {
    "plain": (Arm(EEVDF), Arm(OURS, is_ours=True), Arm("EEVDF again")),
    "watched": (
        Arm(EEVDF),
        Arm("EEVDF, traced", traces=True),
        Arm(OURS, is_ours=True),
        Arm("dasec, traced", is_ours=True, traces=True),
        Arm("dasec, by itself", is_ours=True, counts=True),
    ),
}
EXTENT = Extent(Level.FULL)
PAIRS, VMS = 128, 16
"""256 threads of 16 VMs: the paper's machine at its ratio of 3.2 (section 6)."""

SETTLE_S = 0.1


@dataclass(frozen=True, slots=True)
class Scene:
    """`pairs` in so many VMs; each pair on one CPU, or all where they like."""

    name: str
    pairs: int
    vms: int
    pinned: bool

    def cpus(self, pair: int, services: int) -> set[int]:
        """Where it may run."""
        return {pair % services} if self.pinned else set(range(services))

    def busy(self, services: int) -> int:
        """CPUs that never rest: one of each pair always wants to run."""
        return min(self.pairs, services)


SCENES = (
    Scene("one pair, nobody else", 1, 1, pinned=True),
    Scene("128 pairs, each on one CPU", PAIRS, VMS, pinned=True),
    Scene("128 pairs, free", PAIRS, VMS, pinned=False),
)


def main() -> None:
    """All scenes under each arm."""
    seconds, services, which = sys.argv[1].split(",")
    make_room(int(services))
    for arm in SETS[which]:
        with contextlib.ExitStack() as stack:
            monitor = monitored(arm, stack)
            for scene in SCENES:
                rounds = counted(scene, int(services), float(seconds), monitor)
                told = {"arm": arm.name, "scene": scene.name, "busy": scene.busy(int(services)), **rounds}
                print(RUN + json.dumps(told), flush=True)


def monitored(arm: Arm, stack: contextlib.ExitStack) -> BpfEdges | None:
    """The arm's scheduler schedules, and its monitor, if it has one, counts, until the stack is closed."""
    scheduler = None
    if arm.is_ours:
        scheduler = stack.enter_context(Scheduler(options(2), extent=EXTENT if arm.counts else NOTHING))
    if not (arm.traces or arm.counts):
        return None
    return stack.enter_context(contextlib.closing(BpfEdges(EXTENT, scheduler if arm.counts else None)))


def counted(scene: Scene, services: int, seconds: float, monitor: BpfEdges | None) -> dict[str, float]:
    """Rounds, and the time that they took."""
    rounds = memoryview(mmap.mmap(-1, 8 * scene.pairs)).cast("Q")
    with started(scene, services, rounds) as pids:
        if monitor is not None:
            monitor.follow({identity(pid): at // 2 % scene.vms for at, pid in enumerate(pids)})
        time.sleep(SETTLE_S)
        before, began = sum(rounds), time.monotonic()
        time.sleep(seconds)
        return {"rounds": sum(rounds) - before, "seconds": time.monotonic() - began}


def identity(pid: int) -> VcpuId:
    """The only thread of a process."""
    return VcpuId(pid, pid, procfs.read_stat(pid, pid).start_ticks)


@contextlib.contextmanager
def started(scene: Scene, services: int, rounds: memoryview[int]) -> Iterator[list[int]]:
    """The pairs, in their VMs, as long as the block runs: their processes, two by two."""
    groups = [SLICE / f"vm{number}.scope" for number in range(scene.vms)]
    for group in groups:
        group.mkdir()
    pids = []
    gate = os.pipe()  # whoever begins while others are being made keeps all CPUs busy for nothing
    for pair in range(scene.pairs):
        group, cpus = groups[pair % scene.vms], scene.cpus(pair, services)
        here, there = os.pipe(), os.pipe()
        asks = partial(_ask, group, cpus, (there[0], here[1]), gate[0], rounds, pair)
        pids += [child(partial(_answer, group, cpus, (here[0], there[1]))), child(asks)]
        for one in (*here, *there):
            os.close(one)
    os.write(gate[1], b"x" * scene.pairs)
    try:
        yield pids
    finally:
        for group in groups:
            (group / "cgroup.kill").write_text("1")
        for pid in pids:
            os.waitpid(pid, 0)
        for one in gate:
            os.close(one)
        for group in groups:
            end(group)


def _enter(group: Path, cpus: set[int]) -> None:
    (group / "cgroup.procs").write_text(str(os.getpid()))
    os.sched_setaffinity(0, cpus)


def _ask(
    group: Path, cpus: set[int], pipe: tuple[int, int], gate: int, rounds: memoryview[int], pair: int
) -> NoReturn:
    _enter(group, cpus)
    os.read(gate, 1)
    while True:
        os.write(pipe[1], b"x")
        os.read(pipe[0], 1)
        rounds[pair] += 1


def _answer(group: Path, cpus: set[int], pipe: tuple[int, int]) -> NoReturn:
    _enter(group, cpus)
    while True:
        os.read(pipe[0], 1)
        os.write(pipe[1], b"x")


if __name__ == "__main__":
    main()
