"""schbench, where somebody has installed it: workers that a message thread wakes, in a closed loop."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from dasec.lab.kit.driver import Place, WorkDone, WorkOrder

from .options import absent, options_of, refusal
from .program import Benchmark, Program, found

BLOCK = re.compile(
    r"^(Wakeup|Request) Latencies percentiles \(usec\) runtime (\d+) \(s\).*\n((?:[ *]+[\d.]+th: .*\n)+)",
    re.MULTILINE,
)
NOTES = (
    "requests of the warm-up are counted: schbench forgets only their latencies",
    "latencies are of a closed loop: a worker's next request waits for the one before",
)
PERCENTILE = re.compile(r"([\d.]+)th: +(\d+)")


def parse(text: str) -> WorkDone:
    """The last report of each kind; those before cover less of the run."""
    blocks = {kind: (runtime, lines) for kind, runtime, lines in BLOCK.findall(text)}
    if set(blocks) != {"Wakeup", "Request"}:
        raise ValueError("printed no wake-up and request latencies: schbench before version 1.0 is not read")
    figures = {
        f"{kind.lower()}_p{percentile.removesuffix('.0').replace('.', '')}_us": float(value)
        for kind, (_, lines) in blocks.items()
        for percentile, value in PERCENTILE.findall(lines)
    }
    rps, runtime_s = found(r"^average rps: ([\d.]+)", text), float(blocks["Request"][0])
    return WorkDone(
        work=rps * runtime_s,
        unit="requests",
        seconds=runtime_s,
        figures=figures,
        notes=NOTES,
    )


@dataclass(frozen=True, slots=True)
class Schbench(Benchmark):
    """`threads` are one message thread and its workers."""

    name: str = "schbench"

    def missing(self) -> str | None:
        return absent("schbench")

    def start(self, order: WorkOrder, place: Place) -> Program:
        options_of(order, {})
        if order.threads < 2:
            raise refusal(order, "threads", f"must be at least 2, one of them wakes, got '{order.threads}'")
        return Program.start(order, place, command(order), parse)


def command(order: WorkOrder) -> tuple[str, ...]:
    """Whole seconds only: both parts are rounded up."""
    warmup_s, seconds = math.ceil(order.warmup_s), math.ceil(order.seconds)
    told = ("-m", "1", "-t", str(order.threads - 1), "-r", str(warmup_s + seconds))
    return ("schbench", *told, *(("-w", str(warmup_s)) if warmup_s else ()))
