"""Each application for a second or two: does it work here, and what did it measure?"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from dasec.errors import Refusal
from dasec.lab.kit.driver import GUEST, NO_OPTIONS, Driver, Place, WorkDone, WorkOrder

from ..places.guest import why_not_inside

LEAD_S = 0.3
"""Between `begin` and the time that it is told."""


@dataclass(frozen=True, slots=True)
class Trial:
    """What is asked of an application."""

    threads: int = 2
    rate_per_s: float = 0.0
    warmup_s: float = 0.2
    seconds: float = 1.0
    options: Mapping[str, str] = field(default_factory=lambda: NO_OPTIONS)


TRIALS: Mapping[str, Trial] = {
    "fanout": Trial(3, 100),
    "memcached": Trial(2, 1000, options={"keys": "500"}),
    "redis": Trial(1, 500, options={"keys": "500"}),
    "nginx": Trial(2, 200),
    "postgres": Trial(2, 200, options={"keys": "500"}),
    "rocksdb": Trial(2, 200, options={"keys": "500"}),
    "kvm": Trial(2, 100),
    "go": Trial(2, 200),
    "java": Trial(2, 100),
    "tailbench": Trial(2, 200, options={"load-s": "0"}),
    "gluoncv-image-classification": Trial(1, 10),
    "gluoncv-action-recognition": Trial(1, 2, seconds=3.0),
    "matrixmul": Trial(3),
    "sysbench-threads": Trial(warmup_s=0.0),
    "stress-ng": Trial(1, warmup_s=0.0),
    "db-bench": Trial(2, options={"write-kb-per-s": "2000"}),
    "hackbench": Trial(4, options={"loops": "100"}),
}
"""By name, or by how the name begins."""


def trial_of(name: str) -> Trial:
    """What this application is asked."""
    return next((trial for begin, trial in TRIALS.items() if name.startswith(begin)), Trial())


@dataclass(frozen=True, slots=True)
class Tested:
    """One row of the table."""

    name: str
    works: bool
    missing: bool
    said: str


def run(driver: Driver, place: Place, folder: Path, trial: Trial, seed: int = 1) -> WorkDone:
    """One order from start to stop. Raises Refusal."""
    order = WorkOrder(
        driver.name,
        trial.threads,
        trial.rate_per_s,
        seed,
        trial.warmup_s,
        trial.seconds,
        folder,
        trial.options,
    )
    running = driver.start(order, place)
    try:
        running.await_up()
        running.begin(time.monotonic_ns() + int(LEAD_S * 1e9))
        return running.finish()
    finally:
        running.stop()


def test(driver: Driver, place: Place, folder: Path) -> Tested:
    """Never raises a Refusal: it is a row."""
    reason = driver.missing() or (why_not_inside(driver.name) if place.name == GUEST else None)
    if reason is not None:
        return Tested(driver.name, works=False, missing=True, said=reason)
    try:
        outcome = run(driver, place, folder / driver.name, trial_of(driver.name))
    except Refusal as refusal:
        return Tested(driver.name, works=False, missing=False, said=refusal.lines[0])
    return Tested(driver.name, works=True, missing=False, said=", ".join(_measured(outcome)))


def _measured(outcome: WorkDone) -> Iterator[str]:
    yield f"{outcome.work:.0f} {outcome.unit} in {outcome.seconds:.1f} s"
    if outcome.latencies:
        tail = outcome.latencies.percentiles_ns["p99"] / 1e6
        yield f"mean {outcome.latencies.mean_ns / 1e6:.2f} ms, p99 {tail:.2f} ms"
    yield from (f"{name} {value:g}" for name, value in list(outcome.figures.items())[:2])
