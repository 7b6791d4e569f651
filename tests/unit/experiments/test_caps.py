"""What docs/bandwidth.md promises of caps is what the kept runs say."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from statistics import mean
from typing import Any

import pytest

from dasec.lab.kit.ratios import Estimate, estimate, paired_ratios
from experiments.results.kept_cells import Seen
from experiments.studies.caps.published import EACH, HOST, KEPT, LONG, ONE

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
    assert runs["critical+caps"].background_cores > 0.92 * runs["none"].background_cores


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
    assert runs["critical+caps"].background_cores > 0.49 * runs["none"].background_cores


@pytest.mark.parametrize("runs", [runs for _, runs in EACH.cells()])
def test_with_loans_no_more_is_used_than_all_quotas_allow(runs: dict[str, Seen]) -> None:
    (workload, *_) = tomllib.loads((FOLDER / "each.toml").read_text(encoding="utf-8"))["workload"]
    assert runs["critical+caps"].cores < 1.01 * workload["vcpu_quota_cores"] * workload["threads"]


ALONE = {name.split()[1].split("-")[0]: runs for name, runs in ONE.cells()}


def runs_of(cell: str, arm: str) -> Iterator[Mapping[str, Any]]:
    """One of each seed."""
    for line in (ONE.results / "6.12.jsonl").read_text(encoding="utf-8").splitlines():
        block = json.loads(line)
        if block["cell"].startswith(f"{cell}-"):
            yield from (run for run in block["runs"] if run["arm"] == arm)


def writes_of(cell: str, arm: str) -> int:
    """How many caps were written in all of them."""
    return sum(int(run["decided"].get("rule bandwidth.cap", 0)) for run in runs_of(cell, arm))


def background_of_what_is_left(cell: str, arm: str, limit: float) -> float:
    """Of what the service leaves of the limit, on average."""
    vms = [vm for run in runs_of(cell, arm) for vm in run["tenants"]]
    return float(mean(vm["background_cores"] / (limit - vm["cores"] + vm["background_cores"]) for vm in vms))


def test_the_kept_runs_of_one_thread_that_serves_give_the_published_table() -> None:
    assert ONE.table() in (FOLDER / "README.md").read_text(encoding="utf-8")


THREE = {name.split()[1].split("-")[0]: runs for name, runs in ONE.repeated()}


def p99_over_no_limit(cell: str, arm: str) -> list[float]:
    """Of each seed."""
    pairs = zip(THREE[cell][arm], THREE[cell]["no-limit"], strict=True)
    return [round(run.p99_ms / base.p99_ms, 2) for run, base in pairs]


@pytest.mark.parametrize(
    ("cell", "caps", "with_burst"),
    [
        ("sixty", [1.12, 3.84, 3.74], [1.03, 2.82, 1.47]),
        ("one", [1.00, 1.00, 1.28], [1.05, 1.01, 1.01]),
        ("step", [1.19, 2.15, 1.14], [1.00, 1.04, 1.35]),
    ],
)
def test_what_the_page_says_of_three_seeds_is_theirs(
    cell: str, caps: list[float], with_burst: list[float]
) -> None:
    assert p99_over_no_limit(cell, "critical+caps") == caps
    assert p99_over_no_limit(cell, "critical+caps+burst") == with_burst


def test_one_thread_that_serves_waits_little_longer_than_without_a_limit() -> None:
    """Asked were 1.3 times, and 92 % for the background."""
    runs = ALONE["one"]
    assert runs["none"].p99_ms > 5 * runs["no-limit"].p99_ms
    assert max(p99_over_no_limit("one", "critical+caps")) < 1.3
    assert max(p99_over_no_limit("one", "critical+caps+burst")) < 1.06
    assert runs["critical+caps"].background_cores > 0.92 * runs["none"].background_cores


def test_without_a_limit_nothing_is_written_and_nothing_costs() -> None:
    runs = ALONE["free"]
    assert writes_of("free", "critical+caps") == 0
    assert runs["critical+caps"].p99_ms < 1.02 * runs["none"].p99_ms
    assert runs["critical+caps"].background_cores > 0.999 * runs["none"].background_cores


def test_who_is_behind_from_the_start_and_answers_waits_far_less_than_with_the_limit_alone() -> None:
    """Asked were 1.3 times no limit, and 92 % for the background: missed."""
    runs = ALONE["sixty"]
    assert min(p99_over_no_limit("sixty", "none")) > 500
    assert max(p99_over_no_limit("sixty", "critical+caps")) < 4
    assert runs["critical+caps+burst"].p99_ms < 1.8 * runs["no-limit"].p99_ms
    assert background_of_what_is_left("sixty", "critical+caps", 1) > 0.83


def test_in_twelve_seconds_a_burst_does_what_caps_alone_do_not() -> None:
    """Asked were 1.3 times no limit."""
    assert LONG.table() in (FOLDER / "README.md").read_text(encoding="utf-8")
    ((_, runs),) = LONG.cells()
    assert runs["critical+caps"].p99_ms < 2.4 * runs["no-limit"].p99_ms
    assert runs["critical+caps+burst"].p99_ms < 1.3 * runs["no-limit"].p99_ms
    assert max(runs[arm].cores for arm in ("critical+caps", "critical+caps+burst")) < 1.01


def test_who_is_behind_from_the_start_and_answers_nobody_is_not_known_and_not_helped() -> None:
    runs = ALONE["mute"]
    assert writes_of("mute", "critical+caps") == 0
    assert runs["critical+caps"].p99_ms > 100 * runs["no-limit"].p99_ms


def test_after_a_step_of_load_it_waits_little_longer_than_without_a_limit_in_two_seeds_of_three() -> None:
    assert min(p99_over_no_limit("step", "none")) > 50
    assert sorted(p99_over_no_limit("step", "critical+caps"))[1] < 1.3
    assert background_of_what_is_left("step", "critical+caps", 2) > 0.92


@pytest.mark.parametrize("arm", ["critical+caps", "critical+caps+burst"])
@pytest.mark.parametrize(("cell", "limit"), [("sixty", 1), ("one", 2), ("step", 2)])
def test_one_thread_that_serves_and_its_background_use_no_more_than_the_limit(
    cell: str, limit: float, arm: str
) -> None:
    assert ALONE[cell][arm].cores < 1.01 * limit


((_, REAL),) = HOST.repeated()


def over(arm: str, base: str, what: str) -> Estimate:
    """On the real host, repetition by repetition."""
    ours, theirs = ([getattr(run, what) for run in REAL[one]] for one in (arm, base))
    return estimate(paired_ratios(ours, theirs))


def test_on_a_real_host_who_serves_waits_no_longer_than_without_a_limit() -> None:
    assert over("none", "no-limit", "p99_ms").low > 5
    assert over("critical+caps", "no-limit", "p99_ms").high < 1.3
    assert over("critical+caps", "none", "background_cores").low > 0.92
    assert max(run.cores for arm in ("critical+caps", "critical+caps+burst") for run in REAL[arm]) < 1.01


@pytest.mark.parametrize(
    ("arm", "base", "what"),
    [
        ("none", "no-limit", "p99_ms"),
        ("none-again", "none", "p99_ms"),
        ("critical+caps", "no-limit", "p99_ms"),
        ("critical+caps+burst", "no-limit", "p99_ms"),
        ("critical+caps", "none", "background_cores"),
        ("critical+caps+burst", "none", "background_cores"),
    ],
)
def test_the_intervals_on_a_real_host_are_those_of_the_kept_runs(arm: str, base: str, what: str) -> None:
    found = over(arm, base, what)
    page = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert HOST.table() in page
    assert f"{found.ratio:.2f} [{found.low:.2f}, {found.high:.2f}]" in page


def test_the_first_page_says_what_caps_do_to_a_limited_host() -> None:
    mean_over, p99_over = (over("critical+caps", "none", what).ratio for what in ("mean_ms", "p99_ms"))
    page = (FOLDER.parents[2] / "README.md").read_text(encoding="utf-8")
    assert f"| CPU limit, with [caps](docs/bandwidth.md) | {mean_over:.2f} | {p99_over:.2f} |" in page
