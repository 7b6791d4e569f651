"""What docs/findings.md says is what the raw runs say."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest

from experiments.results.waiting import read, waiting_table
from experiments.studies.testbed.findings import (
    CAUSES,
    NAMES,
    POLICIES_BY_CAUSE,
    RESULTS,
    WAITING,
    growth,
    in_short,
    only,
    over_none,
    runs,
)
from experiments.studies.testbed.published import ARMS, draw
from experiments.studies.testbed.tables import (
    NOT_RUN,
    cause_table,
    cost_table,
    growth_table,
    plain_table,
    policy_table,
    short_table,
)

PAGE = (Path(__file__).resolve().parents[3] / "docs/findings.md").read_text(encoding="utf-8")


def tables(text: str) -> list[str]:
    return [part for part in text.split("\n\n") if part.startswith("|")]


TABLES = tables(PAGE)


SHOWN = ("none-again", *ARMS)


def arms_of(found: Iterable[Mapping[str, object]]) -> list[str]:
    """Those measured, as they are shown: none is left out."""
    measured = {arm for arms in found for arm in arms}
    assert measured <= {"none", *SHOWN}
    return [arm for arm in SHOWN if arm in measured]


def table_of(name: str) -> str:
    if name in CAUSES:
        return growth_table(growth(name))
    found = {load: over_none(at) for load, at in runs(name).items()}
    arms = arms_of(arms for at in found.values() for arms in at.values())
    if name in POLICIES_BY_CAUSE:
        return cause_table(found, arms)
    (at,) = found.values()
    return policy_table(at, arms)


@pytest.mark.parametrize("name", NAMES)
def test_the_page_has_the_tables_of_the_raw_runs(name: str) -> None:
    assert tables_before(f"(findings-{name}.png)")[-1] == table_of(name)


@pytest.mark.parametrize("name", WAITING)
def test_the_page_has_who_waited_while_others_were_ready(name: str) -> None:
    found = read(RESULTS / f"{name}.json")
    assert tables_before(f"(findings-{name}.png)")[-1] == waiting_table(found)


@pytest.mark.parametrize("name", ["sweep", "sweep-cfs", "many", *POLICIES_BY_CAUSE])
def test_the_page_has_how_the_plain_kernel_grows(name: str) -> None:
    if name in POLICIES_BY_CAUSE:
        assert growth_table(growth(name)) in TABLES
    else:
        assert plain_table(only(name)) in TABLES


def test_the_page_has_what_80_cpus_cost() -> None:
    assert cost_table(only("many"), ["critical", "dasec"]) in TABLES


def test_the_page_begins_with_the_results_in_short() -> None:
    assert TABLES[0] == short_table(in_short(), ["critical", "oracle", "dasec"])


def tables_before(place: str) -> list[str]:
    before, found, _ = PAGE.partition(place)
    assert found
    return tables(before)


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
    assert {file.name for file in tmp_path.iterdir()} == {
        f"findings-{name}.png" for name in (*NAMES, *WAITING)
    }
