"""The points of an experiment: each mix of workloads at each ratio, rate and layout. Pure."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product

from ..suite.oracle import ORACLE
from .schema import Experiment, MixTable, WorkloadTable


@dataclass(frozen=True, slots=True)
class Instance:
    """One of the workloads that share the host."""

    name: str
    workload: WorkloadTable
    rate_per_s: float


@dataclass(frozen=True, slots=True)
class Cell:
    """One mix at one point."""

    mix: str
    ratio: float
    """Threads a core as they are, not as they were asked for: instances are whole."""
    rate_factor: float
    layout: str
    instances: tuple[Instance, ...]

    @property
    def name(self) -> str:
        """As in the report and in the names of files."""
        factor = "" if self.rate_factor == 1 else f"-x{self.rate_factor:g}"
        return f"{self.mix}-r{self.ratio:g}{factor}-{self.layout}"

    @property
    def parts(self) -> tuple[str, ...]:
        """The names of its workloads, each of which may have several instances."""
        return tuple(dict.fromkeys(one.workload.called for one in self.instances))

    @property
    def critical(self) -> tuple[str, ...]:
        """Names of the threads that requests wait for, where anybody has said so."""
        return tuple(name for one in self.instances for name in one.workload.critical)


@dataclass(frozen=True, slots=True)
class Gap:
    """A part of the experiment that is not measured here, and why."""

    what: str
    why: str


@dataclass(frozen=True, slots=True)
class Cells:
    """Those that can be measured here, and why others cannot."""

    possible: tuple[Cell, ...]
    gaps: tuple[Gap, ...]


def cells_of(experiment: Experiment, cores: int, missing: Mapping[str, str]) -> Cells:
    """All points that were asked for, less those whose drivers are missing. Two that come out alike are one."""
    possible: dict[str, Cell] = {}
    gaps = []
    for mix in experiment.mix:
        lacking = dict.fromkeys(one.driver for one in mix.workload if one.driver in missing)
        if lacking:
            gaps += [Gap(f"{mix.name}: {driver}", missing[driver]) for driver in lacking]
            continue
        for ratio in experiment.ratios:
            counts = _counts(mix, ratio * cores)
            if counts is None:
                gaps.append(Gap(f"{mix.name} at ratio {ratio:g}", f"no room on {cores} cores"))
                continue
            for factor, layout in product(experiment.rate_factors, experiment.layouts):
                cell = _cell(mix, counts, cores, factor, layout)
                possible.setdefault(cell.name, cell)
    return Cells(tuple(possible.values()), tuple(gaps))


def arms_of(experiment: Experiment, cell: Cell) -> tuple[str, ...]:
    """An oracle is defined only where somebody has said who is critical."""
    return tuple(arm for arm in experiment.arms if arm != ORACLE or cell.critical)


def seed_for(experiment: Experiment, cell: Cell, repetition: int, index: int) -> int:
    """Of the arrivals of one instance: no arm goes in, so all arms have the same."""
    return random.Random(f"{experiment.seed}/{cell.name}/{repetition}/{index}").randrange(2**31)


def _counts(mix: MixTable, threads: float) -> tuple[int, ...] | None:
    """How many instances of each workload there are; None if a whole one is more than the ratio allows."""
    fixed = sum(one.threads * one.count for one in mix.workload if one.count)
    each = sum(one.threads for one in mix.workload if not one.count)
    if not each:
        return tuple(one.count or 0 for one in mix.workload)
    number = round((threads - fixed) / each)
    return tuple(one.count or number for one in mix.workload) if number > 0 else None


def _cell(mix: MixTable, counts: tuple[int, ...], cores: int, factor: float, layout: str) -> Cell:
    threads = sum(one.threads * count for one, count in zip(mix.workload, counts, strict=True))
    instances = tuple(
        Instance(f"{one.called}-{index}", one, one.rate_per_s * factor)
        for one, count in zip(mix.workload, counts, strict=True)
        for index in range(count)
    )
    return Cell(mix.name, threads / cores, factor, layout, instances)
