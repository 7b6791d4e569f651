"""Figure 13's experiment, without a guest: what it tells the daemon, and how it judges its results."""

from __future__ import annotations

import json
import tomllib
from dataclasses import asdict
from pathlib import Path

import click
import pytest

from dasec.config.config import Config, check
from dasec.lab.kit.arms import CONTROL, NONE
from dasec.lab.kit.controller import Managed, configuration
from dasec.lab.kit.ratios import Effect
from dasec.lab.kit.results import RunResult, TenantResult
from dasec.lab.load_tool import PERCENTILES, Latencies
from dasec.rcr import RcrParameters
from dasec.rla import RlaParameters
from dasec.tsa import TsaParameters
from experiments.studies.fig13.cells import (
    ALL_RULES,
    ARMS,
    CORES,
    OURS,
    POLICIES,
    RATIOS,
    RULES,
    Cell,
    cells,
    scenario_for,
    settings_for,
)
from experiments.studies.fig13.judge import judge, table
from experiments.studies.fig13.run import ensure_same_build

HALF_THE_LATENCY_US = 9_000
"""Of CFS on 4 to 7 CPUs: 6 ms * 3 / 2 (sched_latency, get_update_sysctl_factor in kernel/sched/fair.c)."""


def told(arm: str) -> Config:
    services = [Managed(tenant.name, 1024, (4711,)) for tenant in scenario_for(2).tenants]
    return check(tomllib.loads(configuration(arm, services, settings_for(arm))), arm)


KINDS: dict[str, type[TsaParameters | RlaParameters | RcrParameters]] = {
    "tsa": TsaParameters,
    "rla": RlaParameters,
    "rcr": RcrParameters,
}


@pytest.mark.parametrize("arm", POLICIES)
def test_the_daemon_takes_the_configuration_of_every_arm(arm: str) -> None:
    config = told(arm)
    assert config.policy == (OURS if arm == OURS else "dasec")
    assert len(config.workload) == 2


@pytest.mark.parametrize("arm", RULES)
def test_an_arm_of_one_rule_has_that_rule_alone(arm: str) -> None:
    given = told(arm).parameters()
    on = {name: given.of(kind).enabled for name, kind in KINDS.items()}
    assert on == {rule: rule == arm for rule in RULES}


def test_all_three_rules_work_together_in_one_arm() -> None:
    given = told(ALL_RULES).parameters()
    assert all(given.of(kind).enabled for kind in KINDS.values())


@pytest.mark.parametrize("arm", ["rla", ALL_RULES])
def test_rla_stays_in_the_range_in_which_the_granularity_of_cfs_has_an_effect(arm: str) -> None:
    assert told(arm).parameters().of(RlaParameters).ceiling_ns <= HALF_THE_LATENCY_US * 1000


@pytest.mark.parametrize("ratio", RATIOS)
def test_a_consolidation_ratio_is_so_many_vcpus_on_a_core(ratio: int) -> None:
    scenario = scenario_for(ratio)
    assert scenario.consolidation_ratio == ratio
    assert {tenant.vcpus for tenant in scenario.tenants} == {CORES}


def test_every_cell_is_found_again_by_its_name_and_runs_every_arm_once() -> None:
    every = cells(RATIOS, 4)
    assert len({cell.name for cell in every}) == len(every)
    for cell in every:
        assert Cell.named(cell.name) == cell
        assert sorted(cell.order) == sorted(ARMS)
    assert len({cell.order for cell in every}) > 1


def run_with(arm: str, repetition: int, mean_ns: float) -> dict[str, object]:
    latencies = Latencies("", 1000, mean_ns, {name: int(2 * mean_ns) for name in PERCENTILES})
    tenants = tuple(
        TenantResult(tenant.name, latencies, 360.0, 0, 0, 0, 0.8, 0.1) for tenant in scenario_for(2).tenants
    )
    run = RunResult(arm, repetition, tenants, 0.0, 0.1, 0.4, 0.0, 0.0, 4.0, {"periods": 80})
    as_read: dict[str, object] = json.loads(json.dumps(asdict(run)))
    return as_read


def test_what_is_faster_is_a_gain_what_is_slower_is_harm_and_noise_is_no_effect() -> None:
    factors = {NONE: 1.0, CONTROL: 1.0, "tsa": 1.3, "rla": 1.0, "rcr": 0.7, ALL_RULES: 0.8, OURS: 1.0}
    noise = (1.0, 1.02, 0.98, 1.01)
    runs = [
        run_with(arm, repetition, 3e6 * factor * (1.0 if arm == NONE else noise[repetition]))
        for repetition in range(4)
        for arm, factor in factors.items()
    ]
    judged = judge(2, runs)
    row = table([judged]).splitlines()[-1]
    verdicts = [field.split()[-1] for field in row.strip("| ").split(" | ")[-len(POLICIES) :]]
    assert verdicts == [
        str(found).split()[-1]
        for found in (Effect.HARM, Effect.NO_EFFECT, Effect.GAIN, Effect.GAIN, Effect.NO_EFFECT)
    ]


def test_cells_of_another_build_are_not_mixed_with_ours(tmp_path: Path) -> None:
    ensure_same_build(tmp_path)
    (tmp_path / "cell-1-0.json").touch()
    ensure_same_build(tmp_path)
    (tmp_path / "build").write_text("another")
    with pytest.raises(click.UsageError, match="has cells of another build"):
        ensure_same_build(tmp_path)
