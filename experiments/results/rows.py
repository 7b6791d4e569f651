"""What a folder of results has of a cell, or of the instances of one workload in it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic

from dasec.lab.kit.ratios import LEAST, Estimate, estimate, geometric_mean
from dasec.lab.kit.results import RunResult

from ..plan.blocks import CellT
from .analysis import LATENCIES, PACE, THROUGHPUT, Summary, summarise
from .store import Done

ALL = "all"
"""The part of a cell that is the whole of it."""


@dataclass(frozen=True, slots=True)
class Row(Generic[CellT]):
    """A cell, or the instances of one workload in it."""

    part: str
    summary: Summary[CellT]
    blocks: tuple[Done, ...]

    @property
    def cell(self) -> CellT:
        """Where it belongs."""
        return self.summary.cell

    @property
    def arms(self) -> tuple[str, ...]:
        """As they were measured there."""
        return tuple(sorted({run.arm for run in self.blocks[0].runs}))

    def values(self, arm: str, metric: str) -> tuple[float, ...]:
        """One a repetition: each instance has one voice. Nothing if it is missing in any repetition."""
        found = tuple(self._value(one.of(arm), metric) for one in self.blocks)
        return found if all(found) else ()

    def _value(self, run: RunResult, metric: str) -> float:
        """Of a run as a whole: the geometric mean of its instances, 0 if none has it. Who gets something done
        in any run, but nothing in this one, is the worst off here."""
        if metric == PACE:
            rate = self._value(run, THROUGHPUT)
            return 1 / rate if rate else 0.0
        if metric == THROUGHPUT:
            values = [max(one.throughput_per_s, LEAST) for one in run.tenants if one.name in self._working]
        else:
            served = [one for one in run.tenants if metric not in LATENCIES or one.latencies.count]
            values = [value for one in served if (value := one.value(metric)) > 0]
        return geometric_mean(values) if values else 0.0

    @property
    def _working(self) -> frozenset[str]:
        """The instances that get anything done in any run."""
        runs = (run for block in self.blocks for run in block.runs)
        return frozenset(one.name for run in runs for one in run.tenants if one.throughput_per_s)

    def absolute(self, arm: str, metric: str) -> Estimate | None:
        """In ns, requests a second or cores, with its interval; None where nothing has measured it."""
        values = self.values(arm, metric)
        return estimate(values) if values else None


def rows_of(cells: Sequence[CellT], done: Sequence[Done], arms: Sequence[str]) -> Iterator[Row[CellT]]:
    """A row for each cell of which anything is finished."""
    for cell in cells:
        blocks = sorted((one for one in done if one.cell == cell.name), key=lambda one: one.repetition)
        summary = summarise(cell, blocks, arms)
        if summary:
            yield Row(ALL, summary, tuple(blocks))


def host_line(host: Mapping[str, object]) -> str:
    """What was measured on, in short."""
    known = (("Linux {}", "kernel"), ("{} CPUs", "cpus"), ("{}", "cpu_model"))
    return ", ".join(text.format(host[key]) for text, key in known if key in host)
