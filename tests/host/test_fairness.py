"""On a saturated core the real daemon leaves every workload its CPU time, a faker's neighbour too."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from dasec.lab.kit.arms import CONTROL, NONE
from dasec.lab.kit.results import RunResult
from experiments.plan.contests import POLICY, Contests
from experiments.results.contests.analysis import contest_and_layout
from experiments.results.store import Done, Store

from .test_loads import check_nothing_is_left

ARMS = (NONE, CONTROL, POLICY)
SHORT = ("contests=['fanout','faker-lends']", "layouts=['flat']", "repetitions=1", "seconds=10")
TOLERANCE = 0.1
"""On one core, where no thread can be on a worse core than another. What is due is due in any 10 s, up to 8 %
less where the budget allows a look in 1.6 s only (docs/critical.md, "Fair between workloads")."""


@pytest.fixture
def core() -> Iterator[None]:
    """The experiment is for as many cores as it may use: one."""
    mine = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(mine)})
    yield
    os.sched_setaffinity(0, mine)


def part(run: RunResult) -> float:
    """The first workload's part of what both got: what the rest of the machine took does not count."""
    one, other = run.tenants
    return one.cores / (one.cores + other.cores)


@pytest.mark.thorough
@pytest.mark.host
@pytest.mark.timing
@pytest.mark.usefixtures("core")
def test_neither_an_honest_service_nor_a_faker_changes_what_its_neighbour_gets(
    repository: Path, tmp_path: Path
) -> None:
    file = repository / "experiments/studies/fairness/host.toml"
    command = [sys.executable, "-m", "experiments", "run", str(file), "--out", str(tmp_path)]
    for setting in SHORT:
        command += ["--set", setting]
    done = subprocess.run(command, cwd=repository, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "| flat | `fanout` | batch |" in (tmp_path / "report.md").read_text(encoding="utf-8")
    found = Store(tmp_path, Contests).done()
    assert {contest_and_layout(one.cell)[0] for one in found} == {"fanout", "faker-lends"}
    for one in found:
        check(one)
    check_nothing_is_left()


def check(done: Done) -> None:
    """Against the mean of both runs without the policy."""
    parts = {arm: part(done.of(arm)) for arm in ARMS}
    base = sum(parts[arm] for arm in ARMS if arm != POLICY) / 2
    assert done.of(POLICY).decided.get("applied", 0) > 0, "the policy did nothing"
    assert parts[POLICY] == pytest.approx(base, rel=TOLERANCE), (done.cell, parts)
