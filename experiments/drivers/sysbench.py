"""sysbench's cpu and threads tests (Debian: sysbench): events, one after the other in each thread."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from dasec.lab.kit.driver import Place, WorkDone, WorkOrder

from .options import absent, options_of, whole
from .program import Benchmark, Program, found

PROGRAM = "sysbench"
LARGEST_SEED = 2**31 - 1
"""An int of C (1.0.20)."""

CHECKPOINT = "Checkpoint report:"
CPU: Mapping[str, str] = {"cpu-max-prime": "10000"}
THREADS: Mapping[str, str] = {"thread-yields": "1000", "thread-locks": "8"}
"""sysbench's own defaults (1.0.20)."""


def parse(text: str) -> WorkDone:
    """After the last checkpoint, if there was one: events count from there, `total time` does not."""
    before, _, after = text.rpartition(CHECKPOINT)
    last = after[after.rfind("General statistics:") :]
    total_time = r"^ *total time: +([\d.]+)s"
    begin_s = float(match[1]) if before and (match := re.search(total_time, after, re.MULTILINE)) else 0.0
    return WorkDone(
        work=found(r"^ *total number of events: +(\d+)", last),
        unit="events",
        seconds=found(total_time, last) - begin_s,
        figures={
            "event_mean_ms": found(r"^ *avg: +([\d.]+)", last),
            "event_p95_ms": found(r"^ *95th percentile: +([\d.]+)", last),
            "event_max_ms": found(r"^ *max: +([\d.]+)", last),
        },
        notes=("event times are of a closed loop: an event begins when the one before has ended",),
    )


@dataclass(frozen=True, slots=True)
class Sysbench(Benchmark):
    """One of its tests."""

    name: str
    test: str
    defaults: Mapping[str, str] = field(default_factory=dict)

    @property
    def packages(self) -> Mapping[str, str]:
        """Of Debian, by its programs."""
        return {PROGRAM: PROGRAM}

    def missing(self) -> str | None:
        return absent(PROGRAM, PROGRAM)

    def checked(self, order: WorkOrder) -> dict[str, str]:
        """Its options. Refuses those that are none."""
        options = options_of(order, self.defaults)
        for name, text in options.items():
            whole(order, name, text)
        return options

    def start(self, order: WorkOrder, place: Place) -> Program:
        return Program.start(order, place, command(order, self.test, self.checked(order)), parse)


def command(order: WorkOrder, test: str, options: Mapping[str, str]) -> tuple[str, ...]:
    """sysbench takes whole seconds only: both parts are rounded up."""
    warmup_s, seconds = math.ceil(order.warmup_s), math.ceil(order.seconds)
    told = {
        "threads": order.threads,
        "time": warmup_s + seconds,
        "rand-seed": order.seed % LARGEST_SEED or 1,
        **options,
    }
    if warmup_s:
        told["report-checkpoints"] = warmup_s
    return (PROGRAM, test, *(f"--{name}={value}" for name, value in told.items()), "run")
