"""The table and the picture of the kept runs: what each server gains, by regime and arm."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from dasec.lab.kit.arms import CONTROL, NONE
from dasec.lab.kit.ratios import Estimate, estimate, paired_ratios
from dasec.lab.kit.results import RunResult

from ...results.analysis import JUDGED
from ...results.store import Done, Store

RESULTS = Path(__file__).resolve().parent / "results"
PICTURE = RESULTS / "servers.png"
ARMS = {CONTROL: "plain again", "critical": "`critical`", "oracle": "oracle", "scx": "`dasec scx`"}
GAIN, NOTHING, HARM = "gain", "nothing", "harm"
COLOURS = {CONTROL: "#999999", "critical": "#0072B2", "oracle": "#009E73", "scx": "#D55E00"}


@dataclass(frozen=True, slots=True)
class Cell:
    """One server at one point, all of its repetitions."""

    host: str
    """The experiment's file."""
    name: str
    blocks: tuple[Done, ...]

    def runs(self, arm: str) -> tuple[RunResult, ...]:
        """Of this arm, by repetition; nothing if it was not there."""
        return tuple(run for one in self.blocks for run in one.runs if run.arm == arm)

    @property
    def busy(self) -> float:
        """Part of the CPUs that services used, on the plain kernel."""
        return statistics.mean(run.busy for run in self.runs(NONE))

    def plain_ms(self, metric: str) -> float:
        """Of all VMs."""
        values = [one.value(metric) for run in self.runs(NONE) for one in run.tenants]
        return statistics.mean(values) / 1e6

    def ratio(self, arm: str, metric: str) -> Estimate:
        """Over the plain kernel: each VM beside itself, with the interval over VMs and repetitions."""
        pairs: list[float] = []
        for run, plain in zip(self.runs(arm), self.runs(NONE), strict=True):
            values = [one.value(metric) for one in run.tenants]
            pairs += paired_ratios(values, [one.value(metric) for one in plain.tenants])
        return estimate(pairs)

    def word(self, arm: str) -> str:
        """What both latencies say that leave the plain kernel's own difference from itself behind."""
        words = {self._word(arm, metric) for metric in JUDGED}
        if HARM in words:
            return HARM
        return GAIN if GAIN in words else NOTHING

    def _word(self, arm: str, metric: str) -> str:
        found, control = self.ratio(arm, metric), self.ratio(CONTROL, metric)
        if found.high < min(1.0, control.low):
            return GAIN
        return HARM if found.low > max(1.0, control.high) else NOTHING

    def done(self, arm: str) -> tuple[float, float]:
        """Requests and background's CPU time, over the plain kernel's."""
        return self._over(arm, "requests"), self._over(arm, "background")

    def _over(self, arm: str, what: str) -> float:
        sums = []
        for one in (arm, NONE):
            tenants = [tenant for run in self.runs(one) for tenant in run.tenants]
            sums.append(
                math.fsum(
                    tenant.throughput_per_s if what == "requests" else tenant.cores for tenant in tenants
                )
            )
        return sums[0] / sums[1]


def cells(results: Path = RESULTS) -> Iterator[Cell]:
    """Every kept cell."""
    for folder in sorted(one.parent for one in results.glob("*/runs.jsonl")):
        by_name: dict[str, list[Done]] = {}
        for done in Store(folder, object).done():
            by_name.setdefault(done.cell, []).append(done)
        for name, blocks in by_name.items():
            yield Cell(folder.name, name, tuple(blocks))
