"""stress-ng as a neighbour (Debian: stress-ng): capped at a share of a core, or bursting to whole ones."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from dasec.lab.kit.driver import Place, WorkDone, WorkOrder

from .options import absent, options_of, whole
from .program import Benchmark, Program, found

CAPPED: Mapping[str, str] = {"load": "50", "slice-ms": "0"}
"""Each stressor computes half of the time, in pieces as short as stress-ng makes them by default."""

BURSTABLE: Mapping[str, str] = {"load": "30", "slice-ms": "500"}
"""Each stressor computes for half a second, then sleeps until its share is right again."""

LONGEST_SLICE_MS = 5000
"""stress-ng's limit (stress-ng(1), --cpu-load-slice)."""

NOTE = "work of the warm-up is in it: stress-ng has no figures of a part of its time"


def parse(yaml: str) -> WorkDone:
    """What --yaml wrote."""
    return WorkDone(
        work=found(r"^ *bogo-ops: (\d+)", yaml),
        unit="bogo ops",
        seconds=found(r"^ *wall-clock-time: ([\d.]+)", yaml),
        figures={"cpu_s": found(r"^ *user-time: ([\d.]+)", yaml) + found(r"^ *system-time: ([\d.]+)", yaml)},
        notes=(NOTE,),
    )


@dataclass(frozen=True, slots=True)
class StressNg(Benchmark):
    """`threads` are stressors, which are processes of one thread."""

    name: str
    defaults: Mapping[str, str] = field(default_factory=dict)

    def missing(self) -> str | None:
        return absent("stress-ng", "stress-ng")

    def start(self, order: WorkOrder, place: Place) -> Program:
        options = options_of(order, self.defaults)
        metrics = order.folder / "metrics.yaml"

        def read(_: str) -> WorkDone:
            return parse(_text(metrics))

        return Program.start(order, place, command(order, options, metrics), read)


def _text(metrics: Path) -> str:
    try:
        return metrics.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise ValueError("wrote no metrics") from None


def command(order: WorkOrder, options: Mapping[str, str], metrics: Path) -> tuple[str, ...]:
    """stress-ng takes whole seconds only: the time is rounded up."""
    load = whole(order, "load", options["load"])
    slice_ms = min(whole(order, "slice-ms", options["slice-ms"], 0), LONGEST_SLICE_MS)
    told = {
        "cpu": order.threads,
        "cpu-load": min(load, 100),
        "timeout": math.ceil(order.total_s),
        "seed": order.seed,
        "temp-path": order.folder,
        "yaml": metrics,
    }
    if slice_ms:
        told["cpu-load-slice"] = slice_ms
    words = [word for name, value in told.items() for word in (f"--{name}", str(value))]
    return ("stress-ng", "--metrics", *words)
