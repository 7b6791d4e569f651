"""In which order runs are made, and which blocks are made again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dasec.lab.demo.situations import situations_for
from dasec.lab.kit import blocks
from dasec.lab.kit.arms import arms_for
from dasec.lab.kit.bench import Bench, RunPlan
from dasec.lab.kit.blocks import AGAIN, STOLEN, Allowance, RunProgress, measure_all, measure_block
from dasec.lab.kit.layout import GroupLayout
from dasec.lab.kit.results import Measured, RunResult
from dasec.lab.kit.scenario import Timing
from dasec.lab.kit.tree import Tree

PLANS = [
    RunPlan(one.scenario, GroupLayout.VM, Timing(1.0), arms_for(["critical"]), repetitions, seed=1)
    for one, repetitions in zip(situations_for(2)[:2], (2, 1), strict=True)
]
ARMS = ("none", "none-again", "critical")


def run(arm: str, repetition: int, steal: float) -> RunResult:
    return RunResult(arm, repetition, (), 0.0, 0.0, 0.9, 0.0, steal, 1.0, {})


class Host:
    """From whose runs the hypervisor takes these parts, one after the other; then nothing."""

    def __init__(self, steals: list[float]) -> None:
        self.made: list[str] = []
        self._steals = iter(steals)

    def measure(self, arm: str) -> RunResult:
        self.made.append(arm)
        return run(arm, 0, next(self._steals, 0.0))


def test_a_block_from_which_much_was_stolen_begins_anew_at_once() -> None:
    host, allowance = Host([0.0, 2 * STOLEN, 0.5 * STOLEN]), Allowance()
    found = measure_block(ARMS, host.measure, allowance)
    assert host.made == ["none", "none-again", *ARMS]
    assert [one.steal for one in found] == [0.5 * STOLEN, 0.0, 0.0]
    assert allowance.spent == 2


@given(st.lists(st.floats(0, 1), max_size=40), st.integers(1, 6))
def test_a_block_has_each_arm_once_and_its_runs_are_of_one_piece(steals: list[float], count: int) -> None:
    host, allowance = Host(steals), Allowance()
    arms = tuple(map(str, range(count)))
    found = measure_block(arms, host.measure, allowance)
    assert tuple(one.arm for one in found) == arms
    assert host.made[-count:] == list(arms)
    assert len(host.made) - count == allowance.spent <= AGAIN
    hit = [number for number, one in enumerate(found, 1) if one.steal > STOLEN]
    assert all(number > allowance.left for number in hit)


@pytest.fixture
def measure(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[float], tuple[Measured, ...]]:
    """A demo on a host from whose runs the hypervisor always takes this part."""

    def demo(steal: float) -> tuple[Measured, ...]:
        def one(bench: Bench, arm: str, repetition: int, tick: Callable[[], None]) -> RunResult:  # noqa: ARG001
            return run(arm, repetition, steal)

        monkeypatch.setattr(blocks, "calibrate", lambda directory: 1.0)  # noqa: ARG005
        monkeypatch.setattr(blocks, "measure_one", one)
        seen = RunProgress(
            begin=lambda number, arm, repetition: None, tick=lambda: None, keep=lambda number, runs: None
        )
        return measure_all(PLANS, Tree(1, tmp_path), tmp_path, seen)

    return demo


def kept(measured: Measured) -> Iterator[tuple[int, str]]:
    return ((one.repetition, one.arm) for one in measured.runs)


@pytest.mark.parametrize("steal", [0.0, 0.5])
def test_every_plan_has_all_its_arms_in_each_of_its_repetitions(
    measure: Callable[[float], tuple[Measured, ...]], steal: float
) -> None:
    for plan, measured in zip(PLANS, measure(steal), strict=True):
        wanted = ((number, arm) for number in range(plan.repetitions) for arm in plan.arms)
        assert sorted(kept(measured)) == sorted(wanted)


def test_on_a_host_from_which_much_is_always_stolen_a_few_runs_are_thrown_away_and_no_more(
    measure: Callable[[float], tuple[Measured, ...]],
) -> None:
    assert sum(measured.thrown_away for measured in measure(0.5)) == AGAIN
    assert sum(measured.thrown_away for measured in measure(0.0)) == 0
