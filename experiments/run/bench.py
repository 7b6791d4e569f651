"""Applications on the kit: what all runs of a cell have in common."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from dasec.lab.kit.arms import settings_of
from dasec.lab.kit.bench import Bench, RunPlan, homes_in_groups, in_group
from dasec.lab.kit.blame import BlameWatch
from dasec.lab.kit.driver import CONTAINER, DOCKER, GUEST, Driver, Place
from dasec.lab.kit.home import TenantHome
from dasec.lab.kit.layout import GroupLayout
from dasec.lab.kit.scenario import Scenario, Timing
from dasec.lab.kit.tree import CLIENT, Tree
from dasec.linux.cgroupfs import Hierarchy

from ..places.places import InContainer, InGuest
from ..plan.oracle import ORACLE, oracle_settings
from ..plan.points import Cell, seed_for
from ..plan.schema import Experiment
from . import knobs
from .containers import ContainerHome, homes_in_docker

CONTAINERS = "containers"
"""The folder of the containers' files."""

LEAD_S = 0.0
"""Applications begin when all of them are up."""


@dataclass(frozen=True, slots=True)
class Site:
    """Where the runs of an experiment happen."""

    experiment: Experiment
    drivers: Mapping[str, Driver]
    tree: Tree
    hierarchy: Hierarchy
    directory: Path
    blame: BlameWatch | None
    calibration: float

    def bench(self, cell: Cell, raw: Path) -> Bench:
        """For the runs of this cell, which leave everything below `raw`."""
        asked = self.experiment
        tenants = tuple(one.tenant(self.drivers[one.workload.driver], cell.place) for one in cell.instances)
        plan = RunPlan(
            Scenario(asked.cores, tenants),
            GroupLayout(cell.layout),
            Timing(asked.seconds, asked.warmup_s, LEAD_S),
            asked.arms,
            asked.repetitions,
            asked.seed,
            {arm: settings_for(asked, cell, arm) for arm in asked.arms},
        )
        return Bench(
            plan,
            self.tree,
            self.directory,
            self.calibration,
            self.blame,
            records=raw,
            kept=raw,
            seed=lambda _, repetition, index: seed_for(asked, cell, repetition, index),
            homes=partial(homes_in_docker, raw) if cell.place == DOCKER else homes_in_groups,
            place=partial(_place, cell.place),
            at_end=self._keep_knobs,
        )

    def _keep_knobs(self, folder: Path, homes: Sequence[TenantHome]) -> None:
        found = {home.tenant.name: home.vcpus for home in homes}
        knobs.write(folder, knobs.look(self.tree, self.hierarchy, found))


def _place(where: str, home: TenantHome, scratch: Path, folder: Path) -> Place:
    """The workload's group, or in a container or a guest there if the cell says so; Docker's is its home."""
    if isinstance(home, ContainerHome):
        return home.place
    if where == CONTAINER:
        bundles = scratch / CONTAINERS / home.tenant.name
        return InContainer(home.tree, home.group, CLIENT, bundles, (folder,))
    if where == GUEST:
        return InGuest(home.tree, home.group, CLIENT, home.tenant.vcpus)
    return in_group(home, scratch, folder)


def settings_for(experiment: Experiment, cell: Cell, arm: str) -> str:
    """What the daemon is told under an arm."""
    for own in experiment.arm:
        if own.name == arm:
            return own.settings
    if arm == ORACLE:
        return oracle_settings(cell.critical)
    return settings_of(arm)
