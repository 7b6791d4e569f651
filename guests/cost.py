"""What the patch costs two loads that do little but wake each other, in instructions of a counted guest."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from pathlib import Path

from guests.counted import parse, run_jobs
from guests.qemu import Qemu

CPUS = 2
NS_PER_INSTRUCTION = 2
"""-icount shift=1."""
TIMEOUT_S = 1500
CONSOLE_TAIL = 4000

LOADS = ("pipe", "messaging")
UNUSED = "unused"
COUNTED = "counted"
CONTROLLED = "controlled"


@dataclass(frozen=True, slots=True)
class Cost:
    """Instructions of one operation: the mean of the blocks, and its standard error."""

    instructions: float
    error: float

    def more_than(self, base: Cost) -> tuple[float, float]:
        """By how many percent, and the half of the interval of 95 %."""
        percent = 100 / base.instructions
        half = 1.96 * (self.error**2 + base.error**2) ** 0.5
        return (self.instructions - base.instructions) * percent, half * percent


def cost(qemu: Qemu, kernel: Path, initramfs: Path, load: str, use: str, *, shifted: bool = False) -> Cost:
    """A boot of its own. `shifted`: after another program has run, as a control of what chance does."""
    job = f"{load}-{use}"
    jobs = ("nothing", job) if shifted else (job,)
    run = run_jobs(qemu, kernel, initramfs, CPUS, jobs, TIMEOUT_S)
    assert run.exit_status == 0, run.console[-CONSOLE_TAIL:]
    values = [
        record.number("took_ns") / NS_PER_INSTRUCTION / record.number("operations")
        for record in parse(run.console)[job].named("cost")
    ]
    return Cost(statistics.mean(values), statistics.stdev(values) / len(values) ** 0.5)
