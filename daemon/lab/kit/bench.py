"""A series of runs as data, and what they have in common."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path

from ...reservations.grants import CpuClass
from .arms import NO_LIMIT, schedule
from .blame import BlameWatch
from .driver import Place
from .home import TenantHome, make_homes
from .layout import GroupLayout
from .place import InGroup
from .scenario import Scenario, Tenant, Timing, seed_of
from .tree import Tree

OVERHEAD_S = 0.3
"""Stopping the daemon and removing the groups, each run (78 in 4 min 34 s: experiments/studies/demo)."""


@dataclass(frozen=True, slots=True)
class RunPlan:
    """Everything that a series of runs was asked to do."""

    scenario: Scenario
    layout: GroupLayout
    timing: Timing
    arms: tuple[str, ...]
    repetitions: int
    seed: int
    settings: Mapping[str, str] = field(default_factory=dict)
    """What the daemon is told under an arm, as TOML; where there is nothing, the arm is a policy's name."""
    classes: Mapping[str, CpuClass] = field(default_factory=dict)
    """How workloads that want CPUs of their own get them, under the arms where they do."""

    @property
    def orders(self) -> tuple[tuple[str, ...], ...]:
        """The arms of each repetition in their order."""
        return schedule(self.arms, self.repetitions, self.seed)

    @property
    def run_s(self) -> float:
        """How long one run takes, about."""
        return self.timing.total_s + OVERHEAD_S

    @property
    def total_s(self) -> float:
        """How long all runs take, about."""
        return len(self.arms) * self.repetitions * self.run_s


def usual_seed(plan: RunPlan, repetition: int, index: int) -> int:
    """The plan's, for each repetition and workload another one."""
    return seed_of(plan.seed, repetition, index)


def in_group(home: TenantHome, scratch: Path, folder: Path) -> Place:  # noqa: ARG001  # the interface of places to live
    """The usual place: the workload's group."""
    return InGroup(home.tree, home.group)


@contextlib.contextmanager
def homes_in_groups(plan: RunPlan, tree: Tree, arm: str) -> Iterator[tuple[TenantHome, ...]]:
    """The usual homes: groups of ours, made; a run sweeps its tree itself."""
    yield make_homes(tree, scenario_under(plan, arm), plan.layout, limited=arm != NO_LIMIT)


def scenario_under(plan: RunPlan, arm: str) -> Scenario:
    """The workloads as they are under an arm: who has whole CPUs of its own has no limit (decision 0045)."""
    if plan.classes.get(arm) is not CpuClass.WHOLE:
        return plan.scenario
    return replace(plan.scenario, tenants=tuple(map(_unlimited, plan.scenario.tenants)))


def _unlimited(tenant: Tenant) -> Tenant:
    return tenant if tenant.reserved_cores is None else replace(tenant, quota_cores=None)


@dataclass(frozen=True, slots=True)
class Bench:
    """What all runs of a plan have in common."""

    plan: RunPlan
    tree: Tree
    directory: Path
    calibration: float
    blame: BlameWatch | None = None
    records: Path | None = None
    """Where the daemon's record of every run is kept, if anywhere."""
    kept: Path | None = None
    """Where the applications' files of every run are kept, if anywhere."""
    seed: Callable[[RunPlan, int, int], int] = usual_seed
    """Of the arrivals of a workload in a repetition."""
    homes: Callable[[RunPlan, Tree, str], AbstractContextManager[tuple[TenantHome, ...]]] = homes_in_groups
    """Of a run, as long as it lasts."""
    place: Callable[[TenantHome, Path, Path], Place] = in_group
    """Where the processes of a home live; told a folder that goes with the run, and that of their files."""
    at_end: Callable[[Path, Sequence[TenantHome]], None] | None = None
    """Looks at what it wants at the end of the measured part; what it keeps goes to that folder."""
    inside: Sequence[str] = ()
    """What a command begins with that shall see a libvirtd in a namespace of its own."""


def run_name(arm: str, repetition: int) -> str:
    """Of the folder of a run."""
    return f"{repetition}-{arm}"


def record_name(arm: str, repetition: int) -> str:
    """Of the file with the daemon's record of a run."""
    return f"{run_name(arm, repetition)}.jsonl"
