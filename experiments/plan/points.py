"""The points of an experiment: each mix of workloads at each ratio, rate and layout. Pure."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import product

from dasec.lab.kit.driver import CGROUP, GUEST, Driver
from dasec.lab.kit.scenario import Tenant

from ..places.guest import VCPUS, why_not_inside
from .oracle import ORACLE
from .schema import Experiment, MixTable, WorkloadTable


@dataclass(frozen=True, slots=True)
class Instance:
    """One of the workloads that share the host."""

    name: str
    workload: WorkloadTable
    rate_factor: float
    vcpus: int
    critical: tuple[str, ...]
    """Names of the threads that requests wait for; empty where its driver does not know."""

    def tenant(self, driver: Driver, place: str) -> Tenant:
        """As a run takes it. Of batch work everybody's blame is counted."""
        asked = self.workload.order(self.name, self.rate_factor)
        return Tenant(
            self.name,
            driver,
            self.vcpus,
            asked.rate_per_s,
            tuple(asked.options.items()),
            self.critical or ("*",),
            asked.threads,
            VCPUS if place == GUEST else self.workload.vcpus or ("*",),
            has_emulator=True,
            is_exact=False,
        )


@dataclass(frozen=True, slots=True)
class Cell:
    """One mix at one point."""

    mix: str
    ratio: float
    """Threads a core as they are, not as they were asked for: instances are whole."""
    rate_factor: float
    layout: str
    place: str
    instances: tuple[Instance, ...]

    @property
    def name(self) -> str:
        """As in the report and in the names of files."""
        return self.point if self.place == CGROUP else f"{self.point}-{self.place}"

    @property
    def point(self) -> str:
        """What it has in common with the cells that differ in their place only."""
        factor = "" if self.rate_factor == 1 else f"-x{self.rate_factor:g}"
        return f"{self.mix}-r{self.ratio:g}{factor}-{self.layout}"

    @property
    def parts(self) -> tuple[str, ...]:
        """The names of its workloads, each of which may have several instances."""
        return tuple(dict.fromkeys(one.workload.called for one in self.instances))

    @property
    def critical(self) -> tuple[str, ...]:
        """Names of the threads that requests wait for, where anybody knows."""
        return tuple(name for one in self.instances for name in one.critical)


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


def cells_of(
    experiment: Experiment, cores: int, drivers: Mapping[str, Driver], missing: Mapping[str, str]
) -> Cells:
    """All points that were asked for, but what `missing` names. Two that come out alike are one."""
    possible: dict[str, Cell] = {}
    gaps = []
    places = [place for place in experiment.places if place not in missing]
    gaps += [Gap(f"place: {place}", missing[place]) for place in experiment.places if place in missing]
    for mix in experiment.mix:
        lacking = dict.fromkeys(one.driver for one in mix.workload if one.driver in missing)
        if lacking:
            gaps += [Gap(f"{mix.name}: {driver}", missing[driver]) for driver in lacking]
            continue
        outside = [why for one in mix.workload if (why := why_not_inside(one.driver))]
        able = [place for place in places if place != GUEST or not outside]
        if able != places:
            gaps += [Gap(f"{mix.name} in place {GUEST}", why) for why in dict.fromkeys(outside)]
        for ratio in experiment.ratios:
            counts = _counts(mix, ratio * cores, drivers)
            if counts is None:
                gaps.append(Gap(f"{mix.name} at ratio {ratio:g}", f"no room on {cores} cores"))
                continue
            for factor, layout, place in product(experiment.rate_factors, experiment.layouts, able):
                instances = _instances(mix, counts, factor, drivers, place)
                cell = Cell(mix.name, 0.0, factor, layout, place, instances)
                cell = replace(cell, ratio=sum(one.vcpus for one in cell.instances) / cores)
                possible.setdefault(cell.name, cell)
    return Cells(tuple(possible.values()), tuple(gaps))


def arms_of(experiment: Experiment, cell: Cell) -> tuple[str, ...]:
    """An oracle is defined only where somebody has said who is critical."""
    return tuple(arm for arm in experiment.arms if arm != ORACLE or cell.critical)


def seed_for(experiment: Experiment, cell: Cell, repetition: int, index: int) -> int:
    """Of the arrivals of one instance: no arm and no place goes in, so all of them have the same."""
    return random.Random(f"{experiment.seed}/{cell.point}/{repetition}/{index}").randrange(2**31)


def _counts(mix: MixTable, vcpus: float, drivers: Mapping[str, Driver]) -> tuple[int, ...] | None:
    """How many instances of each workload there are; None if a whole one is more than the ratio allows."""
    fixed = sum(_vcpus(one, drivers) * one.count for one in mix.workload if one.count)
    each = sum(_vcpus(one, drivers) for one in mix.workload if not one.count)
    if not each:
        return tuple(one.count or 0 for one in mix.workload)
    number = round((vcpus - fixed) / each)
    return tuple(one.count or number for one in mix.workload) if number > 0 else None


def _vcpus(workload: WorkloadTable, drivers: Mapping[str, Driver]) -> int:
    return drivers[workload.driver].vcpus(workload.order(workload.called))


def _instances(
    mix: MixTable, counts: tuple[int, ...], factor: float, drivers: Mapping[str, Driver], place: str
) -> tuple[Instance, ...]:
    """From outside nobody sees which thread a guest's vCPU runs, so nobody knows who is critical."""
    return tuple(
        Instance(
            f"{one.called}-{index}",
            one,
            factor,
            _vcpus(one, drivers),
            () if place == GUEST else drivers[one.driver].critical(one.order(one.called)),
        )
        for one, count in zip(mix.workload, counts, strict=True)
        for index in range(count)
    )
