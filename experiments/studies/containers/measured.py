"""One run: containers that are new, the daemon beside them, and what they did."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from dasec.lab.kit.controller import running
from dasec.lab.kit.driver import Driver, RunningWork, WorkDone, WorkOrder
from dasec.lab.kit.load_driver import NO_REQUESTS_PER_S, LoadService
from dasec.lab.kit.tree import DAEMON, TOP, Group, Tree
from dasec.linux.cgroupfs import find_hierarchy

from ...drivers.nginx import Nginx
from ...places.docker import container
from .arms import ARMS, BATCH, BATCHES, WEB, Arm

RATE_PER_S = 60.0
BESIDE = {"background": "3", "burst-us": "10000", "bursts-per-s": "17"}
"""In the service's own container: half a CPU."""

SERVED = {**BESIDE, "files": "16", "file-bytes": "100000", "connections": "8"}
"""A request takes some milliseconds: nginx compresses what it sends."""

COMPUTES = {
    "helpers": "0",
    "background": "2",
    "background-burst-us": "10000",
    "background-rate": "22",
}
"""In each other container: 0.44 of a CPU."""

FIRST = ("chrt", "--fifo", "1")
"""Who asks goes before all that is measured (decision 0082)."""

LEAD_S = 0.5
"""Until all have been told when to begin."""


@dataclass(frozen=True, slots=True)
class Seen:
    """One run. CPUs: used on average by the background in the service's container, and by all others."""

    arm: str
    repetition: int
    mean_ms: float
    p99_ms: float
    requests: float
    unfinished: int
    background_cpus: float
    batch_cpus: float


def run(arm: str, repetition: int, warmup_s: float, seconds: float, scratch: Path) -> Seen:
    """The same arrivals for all arms of a repetition. `scratch` is a folder that all containers can write."""
    scratch.mkdir(parents=True)

    def order(name: str, threads: int, rate_per_s: float, options: dict[str, str]) -> WorkOrder:
        return WorkOrder(
            name, threads, rate_per_s, repetition + 1, warmup_s, seconds, scratch / name, options
        )

    with contextlib.ExitStack() as stack:

        def started(driver: Driver, asked: WorkOrder, options: tuple[str, ...] = ()) -> RunningWork:
            place = container(asked.name, scratch, FIRST, options)
            work = driver.start(asked, stack.enter_context(place))
            stack.callback(work.stop)
            return work

        works = [started(Nginx(), order(WEB, 1, RATE_PER_S, SERVED), ARMS[arm].options)]
        for number in range(BATCHES):
            batch = order(f"{BATCH}-{number}", 2, NO_REQUESTS_PER_S, COMPUTES)
            works.append(started(LoadService(), batch))
        for one in works:
            one.await_up()
        with _daemon(ARMS[arm], scratch):
            begin_ns = time.monotonic_ns() + int(LEAD_S * 1e9)
            for one in works:
                one.begin(begin_ns)
            served, *beside = [one.finish() for one in works]
    assert served.latencies is not None
    return Seen(
        arm,
        repetition,
        served.latencies.mean_ns / 1e6,
        served.latencies.percentiles_ns["p99"] / 1e6,
        served.work,
        served.unfinished,
        _computed(served),
        sum(map(_computed, beside)),
    )


def _computed(done: WorkDone) -> float:
    return sum(each.background_cores for each in done.own_cpu)


@contextlib.contextmanager
def _daemon(arm: Arm, scratch: Path) -> Iterator[None]:
    if arm.policy is None:
        yield
        return
    tree = Tree.of(find_hierarchy())
    tree.make([Group(TOP), Group(DAEMON)])
    try:
        with running(tree, scratch, arm.policy, arm.told) as daemon:
            daemon.await_begun()
            yield
    finally:
        tree.sweep()
