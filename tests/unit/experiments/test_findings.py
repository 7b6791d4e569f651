"""What docs/findings.md says is what the raw runs say."""

from __future__ import annotations

from pathlib import Path

import pytest

from experiments.testbed.findings import CAUSES, NAMES, growth, over_none, plain
from experiments.testbed.pictures import ARMS, draw
from experiments.testbed.tables import NOT_RUN, growth_table, plain_table, policy_table

PAGE = (Path(__file__).resolve().parents[3] / "docs/findings.md").read_text(encoding="utf-8").splitlines()


def of_policies(name: str) -> str:
    found = over_none(name)
    return policy_table(
        found, [arm for arm in ("none-again", *ARMS) if any(arm in at for at in found.values())]
    )


@pytest.mark.parametrize("name", NAMES)
def test_the_page_has_the_tables_of_the_raw_runs(name: str) -> None:
    table = growth_table(growth(name)) if name in CAUSES else of_policies(name)
    assert [line for line in table.splitlines() if line not in PAGE] == []


@pytest.mark.parametrize("name", ["sweep", "sweep-cfs"])
def test_the_page_has_how_the_plain_kernel_grows(name: str) -> None:
    assert f"\n{plain_table(plain(name))}\n" in "\n".join(PAGE)


def test_a_table_names_what_was_not_run_and_leaves_the_zero_out() -> None:
    values = {"mean": [0.5, 2.0], "p99": [0.5, 0.5]}
    found = {3.0: {"critical": values}, 9.0: {}}
    (_, _, row) = policy_table(found, ["critical"]).splitlines()
    assert row == f"| critical | 1.00 [.50, 2.00], .50 [.50, .50] | {NOT_RUN} |"


def test_a_table_of_causes_has_the_latency_and_how_it_differs_from_itself() -> None:
    values = {"mean": [2.0, 3.0], "p99": [10.0, 5.0]}
    (_, _, free, pinned) = growth_table({"lock-holder": {1.0: values}, "lock-holder-pinned": {}}).splitlines()
    assert free == "| lock holder | 2.0, 10.0 [1.50, 0.50] |"
    assert pinned == f"| lock holder, pinned | {NOT_RUN} |"


def test_the_pictures_are_drawn_from_them(tmp_path: Path) -> None:
    draw(tmp_path)
    assert {file.name for file in tmp_path.iterdir()} == {f"findings-{name}.png" for name in NAMES}
