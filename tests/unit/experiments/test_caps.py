"""What docs/bandwidth.md promises of caps is what the kept runs say."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from experiments.results.kept_cells import Seen
from experiments.studies.caps.published import EACH, KEPT

FOLDER = Path(__file__).parents[3] / "experiments/studies/caps"
CPUS = {"four": 4, "eight": 8}
CELLS = dict(KEPT.cells())


def limit_of(cell: str) -> float:
    """Of all workloads of a cell, in CPUs."""
    name = cell.partition(": ")[2]
    for file in FOLDER.glob("*.toml"):
        told = tomllib.loads(file.read_text(encoding="utf-8"))
        for workload in told["workload"]:
            if name.startswith(f"{workload['name']}-"):
                count = max(1, round(told["ratios"][0] * CPUS[file.stem] / workload["threads"]))
                return float(workload["quota_cores"] * count)
    raise AssertionError(cell)


def test_the_kept_runs_give_the_published_table() -> None:
    assert KEPT.table() in (FOLDER / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("runs", CELLS.values(), ids=CELLS)
def test_with_caps_the_limit_costs_the_critical_next_to_nothing(runs: dict[str, Seen]) -> None:
    assert runs["none"].p99_ms > 5 * runs["no-limit"].p99_ms
    assert runs["critical+caps"].p99_ms < 1.3 * runs["no-limit"].p99_ms


@pytest.mark.parametrize("runs", CELLS.values(), ids=CELLS)
def test_background_keeps_nearly_all_that_the_limit_left_it(runs: dict[str, Seen]) -> None:
    if runs["critical+caps"].requests > 1.1 * runs["none"].requests:
        return  # the service got its own part back
    assert runs["critical+caps"].background_s > 0.92 * runs["none"].background_s


@pytest.mark.parametrize("cell", CELLS)
def test_no_more_is_used_than_the_limit_allows(cell: str) -> None:
    assert CELLS[cell]["critical+caps"].cores < 1.01 * limit_of(cell)


def test_the_kept_runs_with_a_quota_for_each_vcpu_give_the_published_table() -> None:
    assert EACH.table() in (FOLDER / "README.md").read_text(encoding="utf-8")


BOUND = {name: runs for name, runs in EACH.cells() if "much-each" in name}


@pytest.mark.parametrize("runs", BOUND.values(), ids=BOUND)
def test_loans_give_back_what_a_quota_that_is_too_small_costs(runs: dict[str, Seen]) -> None:
    assert runs["none"].p99_ms > 30 * runs["no-limit"].p99_ms
    assert runs["critical+caps"].p99_ms < 1.3 * runs["no-limit"].p99_ms
    assert runs["critical+caps"].background_s > 0.49 * runs["none"].background_s


@pytest.mark.parametrize("runs", [runs for _, runs in EACH.cells()])
def test_with_loans_no_more_is_used_than_all_quotas_allow(runs: dict[str, Seen]) -> None:
    (workload, *_) = tomllib.loads((FOLDER / "each.toml").read_text(encoding="utf-8"))["workload"]
    assert runs["critical+caps"].cores < 1.01 * workload["vcpu_quota_cores"] * workload["threads"]
