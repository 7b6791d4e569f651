"""Hosts whose workloads differ: what the daemon and the groups are told under each arm."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from dasec.config.config import check
from dasec.lab.kit.bench import scenario_under
from dasec.lab.kit.controller import Managed, Reserved, configuration
from dasec.lab.kit.layout import GroupLayout, groups_for
from dasec.reservations.grants import CpuClass
from experiments.plan.blocks import Block
from experiments.plan.file import told_in, validated
from experiments.plan.hosts import Hosts, Resident
from experiments.plan.order import Order
from experiments.plan.word import LONGEST
from experiments.run.planned import experiment_in

STUDY = Path(__file__).parents[3] / "experiments/studies/reservations"
FILES = sorted(STUDY.glob("*.toml"))
LIMITS = validated(Hosts, told_in(STUDY / "limits.toml"), STUDY / "limits.toml")


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_each_file_of_the_study_is_right_and_fits_a_kernel_s_command_line(file: Path) -> None:
    experiment = experiment_in(told_in(file), file)
    assert isinstance(experiment, Hosts)
    for cell in experiment.cells.possible:
        order = Order.of(experiment, Block(cell, 0, experiment.arms))
        assert len(order.word) < LONGEST
        assert Order.read(order.word) == order


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_nobody_requests_cpus_that_are_not_there(file: Path) -> None:
    """Equation 1 of rKube."""
    experiment = validated(Hosts, told_in(file), file)
    for host in experiment.host:
        assert sum(each.cpus * each.count for each in host.workload) <= experiment.cpus


def test_a_request_is_a_weight_and_a_limit_is_as_much() -> None:
    cell = LIMITS.cells.possible[0]
    groups = {each.name: each for each in groups_for(cell.scenario, GroupLayout.VM)}
    assert (groups["machine/service-0"].weight, groups["machine/service-0"].quota_cores) == (1536, 1.5)
    assert (groups["machine/batch-0"].weight, groups["machine/batch-0"].quota_cores) == (3584, 3.5)


@pytest.mark.parametrize(("arm", "limit"), [("strict", None), ("wysiwyg", 1.5), ("critical", 1.5)])
def test_only_whole_cpus_come_without_a_limit(arm: str, limit: float | None) -> None:
    plan = LIMITS.plan(Block(LIMITS.cells.possible[0], 0, LIMITS.arms))
    limits = {one.name: one.quota_cores for one in scenario_under(plan, arm).tenants}
    assert limits == {"service-0": limit, "service-1": limit, "service-2": limit, "batch-0": 3.5}


def test_the_daemon_is_told_the_policy_within_a_reservation() -> None:
    plan = LIMITS.plan(Block(LIMITS.cells.possible[0], 0, LIMITS.arms))
    policies = {arm: tomllib.loads(plan.settings[arm])["policy"] for arm in ("strict", "strict:critical")}
    assert policies == {"strict": "none", "strict:critical": "critical"}


def test_the_daemon_takes_a_workload_that_wants_cpus() -> None:
    managed = Managed("web", 1536, (), "/web", reserved=Reserved(CpuClass.EXCLUSIVE, 1.5))
    told = tomllib.loads(configuration("none", [managed]))
    (workload,) = check(told, "settings").workload
    assert (workload.cpu, workload.cpus) == ("exclusive", 1.5)


@pytest.mark.parametrize(
    ("keys", "why"),
    [
        ({"kind": "service"}, "rate_per_s is missing"),
        ({"kind": "service", "rate_per_s": 10, "background": 2}, "main and a helper"),
        ({"kind": "computing", "rate_per_s": 10}, "are of a service"),
        ({"kind": "barriers", "threads": 1}, "need two threads"),
    ],
)
def test_a_workload_that_means_nothing_is_refused(keys: dict[str, object], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        Resident(**{"name": "any", "threads": 3, "cpus": 1.0, **keys})  # type: ignore[arg-type]
