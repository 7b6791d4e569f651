"""In the guest: VMs compute on CPUs of two caches, under our scheduler and the kernel's own.

python -m experiments.studies.sched_ext.moves SECONDS,CPUS

Each arm and scene is a line of JSON: how often a thread was seen on another CPU than at the look before, how
often on one of another cache, and how often on one of the first.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import NamedTuple, NoReturn

from dasec.bpf.scx import Scheduler, options
from dasec.linux.cpus import cache_of

from ...places.counted.inside import RUN
from .contest import SLICE, child, doze, end, hog, make_room, turns_a_ms

EEVDF, OURS, AS_ONE = "EEVDF", "dasec", "dasec, as if one cache"
HYBRID = "dasec, as if hybrid"
"""As if CPUs of the first cache had more capacity than the others."""

AS_FOUR, IN_NODES = "dasec, as if four caches", "dasec, as if four caches in two nodes"
"""As if two CPUs had one. What is a cache to the looks is a node then."""

ARMS = (EEVDF, OURS, AS_ONE, HYBRID, AS_FOUR, IN_NODES)
LOOK_EACH_S = 0.004
"""The scheduler's slice: a thread moves when one begins."""

SLEEPS_LONGER_MS = 0.37
SETTLE_S = 0.5
FIRST = 0
"""The cache of CPU 0."""

PROCESSOR = 36
"""The field of /proc/PID/stat behind the name's parenthesis."""


class Scene(NamedTuple):
    """VMs alike, of threads that compute. `sleep_ms`: after each `run_ms` they rest so long, each for more
    than the one before, so that they wake up beside others each time."""

    name: str
    vms: int
    threads: int
    run_ms: float = 0.0
    sleep_ms: float = 0.0


SCENES = (
    Scene("one VM of 14", 1, 14),
    Scene("seven VMs of 4", 7, 4),
    Scene("two VMs of 5 that sleep", 2, 5, 2.0, 3.0),
    Scene("one VM of 5 that sleep", 1, 5, 2.0, 3.0),
)
"""The last two leave CPUs idle."""


def main() -> None:
    """All scenes under each arm."""
    seconds, services = sys.argv[1].split(",")
    make_room(int(services))
    a_ms = turns_a_ms()
    for arm in ARMS:
        with loaded(arm):
            for scene in scenes_of(arm):
                seen = watched(scene, int(services), float(seconds), a_ms)
                told = {"arm": arm, "scene": scene.name, **seen}
                print(RUN + json.dumps(told), flush=True)


def scenes_of(arm: str) -> tuple[Scene, ...]:
    """Capacities and nodes matter to those that find idle CPUs."""
    return tuple(scene for scene in SCENES if arm in (EEVDF, OURS, AS_ONE) or scene.sleep_ms)


def loaded(arm: str) -> AbstractContextManager[object]:
    chosen = options(2)
    if arm == AS_ONE:
        chosen.caches = 1
    if arm == HYBRID:
        chosen.is_hybrid = True
        for cpu, cache in cache_of().items():
            chosen.is_largest[cpu] = cache == FIRST
    if arm in (AS_FOUR, IN_NODES):
        chosen.caches = 4
        for cpu, cache in cache_of().items():
            chosen.cache_of[cpu], chosen.node_of[cpu] = cpu // 2 * 2, cache
        chosen.nodes = 2 * (arm == IN_NODES)
    return contextlib.nullcontext() if arm == EEVDF else Scheduler(chosen)


def watched(scene: Scene, services: int, seconds: float, a_ms: float) -> dict[str, float]:
    """What the looks of so many seconds saw; `least_s` and `most_s` of CPU time that a thread had."""
    caches = cache_of()
    with computing(scene, set(range(services)), a_ms) as pids:
        time.sleep(SETTLE_S)
        had, at = [used_s(pid) for pid in pids], [processor(pid) for pid in pids]
        moves = far = first = looks = 0
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            time.sleep(LOOK_EACH_S)
            now = [processor(pid) for pid in pids]
            changes = [(one, other) for one, other in zip(at, now, strict=True) if one != other]
            moves, looks, at = moves + len(changes), looks + 1, now
            far += sum(caches[one] != caches[other] for one, other in changes)
            first += sum(caches[one] == FIRST for one in now)
        took = [used_s(pid) - before for pid, before in zip(pids, had, strict=True)]
    return {
        "caches": len({caches[cpu] for cpu in range(services)}),
        "moves": moves,
        "far": far,
        "first": first / len(pids) / looks,
        "looks": looks,
        "seconds": seconds,
        "least_s": min(took),
        "most_s": max(took),
    }


@contextlib.contextmanager
def computing(scene: Scene, cpus: set[int], a_ms: float) -> Iterator[list[int]]:
    """The threads of all VMs, as long as the block runs."""
    groups = [SLICE / f"vm{number}.scope" for number in range(scene.vms)]
    pids: list[int] = []
    for group in groups:
        group.mkdir()
        for _ in range(scene.threads):
            sleep_ms = scene.sleep_ms + SLEEPS_LONGER_MS * len(pids)
            actor = partial(doze, time.monotonic(), int(scene.run_ms * a_ms), sleep_ms / 1000)
            pids.append(child(partial(_compute, group, cpus, actor if scene.sleep_ms else hog)))
    try:
        yield pids
    finally:
        for group in groups:
            (group / "cgroup.kill").write_text("1")
        for pid in pids:
            os.waitpid(pid, 0)
        for group in groups:
            end(group)


def _compute(group: Path, cpus: set[int], actor: Callable[[], NoReturn]) -> NoReturn:
    (group / "cgroup.procs").write_text(str(os.getpid()))
    os.sched_setaffinity(0, cpus)
    actor()


def processor(pid: int) -> int:
    """Where it ran last."""
    return int(Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[PROCESSOR])


def used_s(pid: int) -> float:
    return int(Path(f"/proc/{pid}/schedstat").read_text(encoding="ascii").split()[0]) / 1e9


if __name__ == "__main__":
    main()
