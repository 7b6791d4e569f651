"""In which order a demo makes its runs, and which it makes again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import cast

import pytest

from dasec.lab.demo.situations import situations_for
from dasec.lab.kit import run
from dasec.lab.kit.arms import arms_for
from dasec.lab.kit.layout import GroupLayout
from dasec.lab.kit.results import Measured, RunResult
from dasec.lab.kit.run import AGAIN, STOLEN, Bench, DemoPlan, DemoProgress, Tools, measure_all
from dasec.lab.kit.scenario import Timing
from dasec.lab.kit.tree import Tree

PLANS = [
    DemoPlan(one.scenario, GroupLayout.VM, Timing(1.0), arms_for(["critical"]), repetitions, seed=1)
    for one, repetitions in zip(situations_for(2)[:2], (2, 1), strict=True)
]
TOOLS = Tools(Path("load"), Path("memcached"))


@pytest.fixture
def measure(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[list[float]], tuple[Measured, ...]]:
    """A demo from whose runs the hypervisor takes these parts, one after the other; then nothing."""

    def demo(steals: list[float]) -> tuple[Measured, ...]:
        def one(bench: Bench, arm: str, repetition: int, tick: Callable[[], None]) -> RunResult:  # noqa: ARG001
            steal = steals.pop(0) if steals else 0.0
            return RunResult(arm, repetition, (), 0.0, 0.0, 0.9, 0.0, steal, 1.0, {})

        monkeypatch.setattr(run, "calibrate", lambda tool, directory: 1.0)
        monkeypatch.setattr(run, "measure_one", one)
        seen = DemoProgress(begin=lambda number, arm, repetition: None, tick=lambda: None)
        return measure_all(PLANS, TOOLS, cast(Tree, None), tmp_path, seen)

    return demo


def test_every_plan_has_all_its_arms_in_each_of_its_repetitions(
    measure: Callable[[list[float]], tuple[Measured, ...]],
) -> None:
    for plan, measured in zip(PLANS, measure([]), strict=True):
        found = sorted((one.repetition, one.arm) for one in measured.runs)
        assert found == sorted((number, arm) for number in range(plan.repetitions) for arm in plan.arms)


def test_a_run_from_which_much_was_stolen_is_made_again_and_the_second_counts(
    measure: Callable[[list[float]], tuple[Measured, ...]],
) -> None:
    runs = [one for measured in measure([0.0, 2 * STOLEN, 0.5 * STOLEN]) for one in measured.runs]
    assert [one.steal for one in runs[:3]] == [0.0, 0.5 * STOLEN, 0.0]


def test_on_a_host_from_which_much_is_always_stolen_runs_are_made_again_a_few_times_only(
    measure: Callable[[list[float]], tuple[Measured, ...]],
) -> None:
    steals = [0.5] * 1000
    runs = [one for measured in measure(steals) for one in measured.runs]
    assert 1000 - len(steals) == len(runs) + AGAIN
