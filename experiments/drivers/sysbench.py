"""sysbench's cpu and threads tests (Debian: sysbench): events, one after the other in each thread."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from dasec.lab.kit.driver import Place, WorkDone, WorkOrder

from .options import absent, options_of, whole
from .program import Benchmark, Program, found

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

    def missing(self) -> str | None:
        return absent("sysbench", "sysbench")

    def start(self, order: WorkOrder, place: Place) -> Program:
        options = options_of(order, self.defaults)
        for name, text in options.items():
            whole(order, name, text)
        return Program.start(order, place, command(order, self.test, options), parse)


def command(order: WorkOrder, test: str, options: Mapping[str, str]) -> tuple[str, ...]:
    """sysbench takes whole seconds only: both parts are rounded up."""
    warmup_s, seconds = math.ceil(order.warmup_s), math.ceil(order.seconds)
    told = {"threads": order.threads, "time": warmup_s + seconds, "rand-seed": order.seed or 1, **options}
    if warmup_s:
        told["report-checkpoints"] = warmup_s
    return ("sysbench", test, *(f"--{name}={value}" for name, value in told.items()), "run")
