"""In the guest: VMs compute on CPUs of two caches, under our scheduler and the kernel's own.

python -m experiments.studies.sched_ext.moves SECONDS,CPUS

Each arm and scene is a line of JSON: how often a thread was seen on another CPU than at the look before, and
how often on one of another cache.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import NamedTuple, NoReturn

from dasec.bpf.scx import Scheduler, options
from dasec.linux.cpus import cache_of

from ...places.counted.inside import RUN
from .contest import SLICE, child, end, hog, make_room

EEVDF, OURS, AS_ONE = "EEVDF", "dasec", "dasec, as if one cache"
ARMS = (EEVDF, OURS, AS_ONE)
LOOK_EACH_S = 0.004
"""The scheduler's slice: a thread moves when one begins."""

SETTLE_S = 0.5
PROCESSOR = 36
"""The field of /proc/PID/stat behind the name's parenthesis."""


class Scene(NamedTuple):
    """VMs alike, of threads that compute."""

    name: str
    vms: int
    threads: int


SCENES = (Scene("one VM of 14", 1, 14), Scene("seven VMs of 4", 7, 4))


def main() -> None:
    """All scenes under each arm."""
    seconds, services = sys.argv[1].split(",")
    make_room(int(services))
    for arm in ARMS:
        with loaded(arm):
            for scene in SCENES:
                told = {"arm": arm, "scene": scene.name, **watched(scene, int(services), float(seconds))}
                print(RUN + json.dumps(told), flush=True)


def loaded(arm: str) -> AbstractContextManager[object]:
    chosen = options(2)
    if arm == AS_ONE:
        chosen.caches = 1
    return contextlib.nullcontext() if arm == EEVDF else Scheduler(chosen)


def watched(scene: Scene, services: int, seconds: float) -> dict[str, float]:
    """What the looks of so many seconds saw; `least_s` and `most_s` of CPU time that a thread had."""
    caches = cache_of()
    with computing(scene, set(range(services))) as pids:
        time.sleep(SETTLE_S)
        had, at = [used_s(pid) for pid in pids], [processor(pid) for pid in pids]
        moves = far = looks = 0
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            time.sleep(LOOK_EACH_S)
            now = [processor(pid) for pid in pids]
            changes = [(one, other) for one, other in zip(at, now, strict=True) if one != other]
            moves, looks, at = moves + len(changes), looks + 1, now
            far += sum(caches[one] != caches[other] for one, other in changes)
        took = [used_s(pid) - before for pid, before in zip(pids, had, strict=True)]
    return {
        "caches": len({caches[cpu] for cpu in range(services)}),
        "moves": moves,
        "far": far,
        "looks": looks,
        "seconds": seconds,
        "least_s": min(took),
        "most_s": max(took),
    }


@contextlib.contextmanager
def computing(scene: Scene, cpus: set[int]) -> Iterator[list[int]]:
    """The threads of all VMs, as long as the block runs."""
    groups = [SLICE / f"vm{number}.scope" for number in range(scene.vms)]
    pids = []
    for group in groups:
        group.mkdir()
        pids += [child(partial(_compute, group, cpus)) for _ in range(scene.threads)]
    try:
        yield pids
    finally:
        for group in groups:
            (group / "cgroup.kill").write_text("1")
        for pid in pids:
            os.waitpid(pid, 0)
        for group in groups:
            end(group)


def _compute(group: Path, cpus: set[int]) -> NoReturn:
    (group / "cgroup.procs").write_text(str(os.getpid()))
    os.sched_setaffinity(0, cpus)
    hog()


def processor(pid: int) -> int:
    """Where it ran last."""
    return int(Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[PROCESSOR])


def used_s(pid: int) -> float:
    return int(Path(f"/proc/{pid}/schedstat").read_text(encoding="ascii").split()[0]) / 1e9


if __name__ == "__main__":
    main()
