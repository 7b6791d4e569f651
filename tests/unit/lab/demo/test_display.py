"""What is shown while the demo runs."""

from __future__ import annotations

import io
import time

import pytest
from rich.console import Console

from dasec.lab.demo.display import Clock, shown
from dasec.lab.demo.situations import situations_for
from dasec.lab.kit.arms import arms_for
from dasec.lab.kit.bench import RunPlan
from dasec.lab.kit.layout import GroupLayout
from dasec.lab.kit.results import RunResult
from dasec.lab.kit.scenario import Timing
from tests.unit.lab.demo.build import tenant

NAMES = ("busy", "half busy")
PLANS = [
    RunPlan(one.scenario, GroupLayout.VM, Timing(1.0), arms_for(["dasec"]), repetitions, seed=1)
    for one, repetitions in zip(situations_for(2)[:2], (2, 1), strict=True)
]
RUNS = 9
RUN_S = sum(plan.total_s for plan in PLANS) / RUNS


def block(plan: RunPlan, repetition: int, factor: float) -> list[RunResult]:
    """Whose policy takes so much of the time."""
    runs = []
    for arm in plan.arms:
        taken_ns = int(2e6 * (factor if arm == "dasec" else 1))
        tenants = tuple(tenant(one.name, [taken_ns] * 10) for one in plan.scenario.tenants)
        runs.append(RunResult(arm, repetition, tenants, 0.0, 0.0, 0.9, 0.0, 0.0, 1.0, {}))
    return runs


def test_without_a_terminal_every_run_and_what_each_block_shows_so_far_is_a_plain_line() -> None:
    output = io.StringIO()
    with shown(Console(file=output, width=100), NAMES, PLANS) as progress:
        progress.begin(0, "none", 0)
        progress.tick()
        progress.keep(0, block(PLANS[0], 0, 0.5))
        progress.begin(1, "dasec", 0)
    assert output.getvalue().splitlines() == [
        f"busy, repetition 1/2: none: {RUNS * RUN_S:.0f} s left",
        "busy: mean so far: dasec 0.50",
        f"half busy, repetition 1/1: dasec: {(RUNS - 1) * RUN_S:.0f} s left",
    ]


def test_on_a_terminal_each_situation_has_a_bar_with_what_it_shows_so_far_and_there_is_the_time_left() -> (
    None
):
    output = io.StringIO()
    with shown(Console(file=output, width=100, force_terminal=True), NAMES, PLANS) as progress:
        progress.begin(0, "dasec", 1)
        for repetition, factor in enumerate((0.5, 0.7)):
            progress.keep(0, block(PLANS[0], repetition, factor))
        progress.tick()
    said = output.getvalue()
    assert "2/2" in said
    assert "0/1" in said
    assert "mean: dasec 0.60" in said
    assert "s left" in said
    assert "dasec in busy" in said


def test_a_run_that_takes_long_does_not_let_the_clock_run_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = 1000.0
    monkeypatch.setattr(time, "monotonic", lambda: now_s)
    clock = Clock(PLANS)
    assert clock.left_s == clock.total_s
    clock.begin()
    now_s += 100 * RUN_S
    assert clock.total_s - clock.left_s == pytest.approx(RUN_S)
    clock.begin()
    assert clock.total_s - clock.left_s == pytest.approx(RUN_S)
    now_s += RUN_S / 2
    assert clock.total_s - clock.left_s == pytest.approx(1.5 * RUN_S)


def test_runs_that_are_made_again_do_not_take_the_clock_beyond_its_end() -> None:
    clock = Clock(PLANS)
    for _ in range(2 * RUNS):
        clock.begin()
        assert 0 <= clock.left_s <= clock.total_s
