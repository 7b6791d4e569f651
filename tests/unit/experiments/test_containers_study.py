"""Real containers under the daemon: what it is told, and what was kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from dasec.config.config import load
from experiments.results.effects import effect
from experiments.studies.containers.arms import ARMS, BATCH, LIMIT, PLAIN, WEB, Arm
from experiments.studies.containers.published import P99, kept, ratio, table, values

TOLD = {name: arm for name, arm in ARMS.items() if arm.policy}


@pytest.mark.parametrize("arm", TOLD.values(), ids=TOLD)
def test_the_daemon_understands_what_it_is_told(arm: Arm, tmp_path: Path) -> None:
    file = tmp_path / "dasec.toml"
    file.write_text(arm.told)
    assert [one.container for one in load(file).workload] == [f"docker:{WEB}", f"docker:{BATCH}-*"]


README = (Path(__file__).parents[3] / "experiments/studies/containers/README.md").read_text(encoding="utf-8")
RUNS = kept()
CAPPED = "limit, critical with caps"


def test_the_kept_runs_give_the_published_table() -> None:
    assert table(RUNS) in README


def test_no_request_was_lost_and_each_arm_has_each_repetition() -> None:
    assert all(one.unfinished == 0 for one in RUNS)
    assert {arm: len(values(RUNS, arm, P99)) for arm in ARMS} == dict.fromkeys(ARMS, 6)


def test_what_the_page_says_of_caps_below_the_limit_is_so() -> None:
    assert effect(ratio(RUNS, CAPPED, P99, LIMIT)) == "0.30 [0.23, 0.44]"
    assert effect(ratio(RUNS, CAPPED, "background_cpus", LIMIT)) == "1.00 [0.97, 1.02]"
    assert ratio(RUNS, CAPPED, P99).high < 1 < ratio(RUNS, LIMIT, P99).low


@pytest.mark.parametrize("arm", ["critical", "WYSIWYG", "plain again"])
def test_what_is_called_nothing_is_within_chance(arm: str) -> None:
    assert arm != PLAIN
    found = ratio(RUNS, arm, P99)
    assert found.low < 1 < found.high
