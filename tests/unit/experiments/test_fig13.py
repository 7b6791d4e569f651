"""Figure 13: what the daemon is told under each arm, and that the page says what the kept runs say."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from dasec.config.config import Config, check
from dasec.lab.kit.arms import CONTROL, NONE
from dasec.lab.kit.controller import Managed, configuration
from dasec.lab.kit.ratios import Effect
from dasec.rcr import RcrParameters
from dasec.rla import RlaParameters
from dasec.tsa import TsaParameters
from experiments.plan.arms import ALONE, RULES
from experiments.plan.file import told_in
from experiments.plan.testbed import Shapes
from experiments.run.planned import blocks, experiment_in
from experiments.studies.fig13.published import ARMS, PICTURE, draw, kept, table

HALF_THE_LATENCY_US = 9_000
"""Of CFS on 4 to 7 CPUs: 6 ms * 3 / 2 (sched_latency, get_update_sysctl_factor in kernel/sched/fair.c)."""

FOLDER = Path(__file__).resolve().parents[3] / "experiments/studies/fig13"
KINDS: dict[str, type[TsaParameters | RlaParameters | RcrParameters]] = {
    "tsa": TsaParameters,
    "rla": RlaParameters,
    "rcr": RcrParameters,
}


def experiment() -> Shapes:
    file = FOLDER / "rules.toml"
    found = experiment_in(told_in(file), file)
    assert isinstance(found, Shapes)
    return found


RULES_ALONE = experiment()


def told(arm: str) -> Config:
    block = blocks(RULES_ALONE)[0]
    services = [Managed(tenant.name, 1024, (4711,)) for tenant in block.cell.scenario.tenants]
    settings = RULES_ALONE.plan(block).settings.get(arm, f'policy = "{arm}"\n')
    return check(tomllib.loads(configuration(arm, services, settings)), arm)


@pytest.mark.parametrize("arm", ALONE)
def test_an_arm_of_one_rule_has_that_rule_alone(arm: str) -> None:
    given = told(arm).parameters()
    on = {name: given.of(kind).enabled for name, kind in KINDS.items()}
    assert on == {rule: rule == ALONE[arm] for rule in RULES}


def test_all_three_rules_work_together_in_one_arm() -> None:
    given = told("dasec").parameters()
    assert all(given.of(kind).enabled for kind in KINDS.values())


@pytest.mark.parametrize("arm", ["dasec:rla", "dasec"])
def test_rla_stays_in_the_range_in_which_the_granularity_of_cfs_has_an_effect(arm: str) -> None:
    assert told(arm).parameters().of(RlaParameters).ceiling_ns <= HALF_THE_LATENCY_US * 1000


def test_a_consolidation_ratio_is_so_many_vcpus_on_a_core() -> None:
    for cell in RULES_ALONE.cells.possible:
        assert cell.scenario.consolidation_ratio == cell.ratio
        assert {tenant.vcpus for tenant in cell.scenario.tenants} == {4}
    assert [cell.ratio for cell in RULES_ALONE.cells.possible] == list(RULES_ALONE.ratios)


def test_every_block_that_was_asked_for_is_kept_with_every_arm() -> None:
    found = [block for one in kept() for block in one.blocks]
    assert {one.key for one in found} == {block.key for block in blocks(RULES_ALONE)}
    assert all({run.arm for run in one.runs} == {NONE, CONTROL, *ARMS} for one in found)


def test_the_page_has_the_table_of_the_kept_runs() -> None:
    assert table(kept()) in (FOLDER / "README.md").read_text(encoding="utf-8").split("\n\n")


def test_no_rule_alone_harms_all_three_do_and_ours_gains_where_cores_are_short() -> None:
    told = {(one.ratio, arm): one.summary.arms[arm].verdict for one in kept() for arm in ARMS}
    assert Effect.HARM not in {told[ratio, arm] for ratio, arm in told if arm in ALONE}
    assert [told[ratio, "dasec"] for ratio in (1, 2, 3, 4)] == [Effect.NO_EFFECT, *[Effect.HARM] * 3]
    assert [told[ratio, "critical"] for ratio in (1, 2, 3, 4)] == [
        *[Effect.NO_EFFECT] * 2,
        *[Effect.GAIN] * 2,
    ]


def test_the_picture_is_drawn_from_them(tmp_path: Path) -> None:
    draw(kept(), tmp_path)
    assert (tmp_path / PICTURE).stat().st_size > 10_000
