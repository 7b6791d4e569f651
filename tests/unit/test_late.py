"""`critical` with nobody above neutral: who is lowered, and until when, from tables worked by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dasec.critical import CriticalParameters, CriticalState, Fairness

from ..builders import RUNNING, Row, vcpu_id
from .critical_life import BUSY, FAN_OUT, Run, background

WAITING = background(consumed_ms=15, ready_ms=65)
"""Always wants to run."""

LOWERED = 146
"""1024 / 7."""


def test_who_is_waited_for_keeps_its_weight_and_the_others_are_lowered() -> None:
    assert Run().live([*FAN_OUT, background()], periods=BUSY) == [1024] * 4 + [LOWERED]


def test_another_weight_before_is_what_is_kept() -> None:
    rows = [replace(row, weight=2048) for row in [*FAN_OUT, background()]]
    assert Run().live(rows, periods=BUSY) == [2048] * 4 + [292]


def test_who_always_wants_to_run_beside_a_neighbour_pays_for_one_period() -> None:
    run = Run()
    neighbour = [WAITING]
    assert run.live([*FAN_OUT, WAITING], neighbour, periods=4)[4] == LOWERED
    assert run.live([*FAN_OUT, WAITING], neighbour)[4] == 1024
    run.live([*FAN_OUT, WAITING], neighbour, periods=BUSY)
    # a little is forgiven, and taken again
    assert run.weight(4) > 0.8 * 1024


def test_a_workload_that_gives_way_at_its_own_cost_goes_on_doing_so() -> None:
    run = Run(CriticalParameters(fairness=Fairness.GIVING))
    assert run.live([*FAN_OUT, WAITING], [WAITING], periods=BUSY) == [1024] * 4 + [LOWERED]


def test_who_sleeps_again_is_lowered_again() -> None:
    run = Run()
    run.live([*FAN_OUT, WAITING], [WAITING], periods=BUSY)
    run.live([*FAN_OUT, background()], [WAITING], periods=10)
    assert run.weight(4) < 0.3 * 1024


def test_what_a_workload_takes_from_itself_alone_is_its_own() -> None:
    # the two cores are its own: 160 ms, of which four run 19 and two 70.5
    alone = background(consumed_ms=70.5, ready_ms=9.5)
    assert Run().live([*FAN_OUT, alone, alone], periods=BUSY)[4:] == [LOWERED] * 2


def test_the_longest_periods_hardly_lower_anybody() -> None:
    # 350 of 1600 ms
    rows = [replace(row, consumed_ms=row.consumed_ms * 20) for row in [*FAN_OUT, background()]]
    run = Run()
    run.live(rows, periods=4, length_ms=1600)
    assert run.weight(4) == pytest.approx(0.78 * 1024, rel=0.01)


def test_a_workload_without_others_to_give_way_stays_as_it_is() -> None:
    assert Run().live(FAN_OUT, [WAITING], periods=BUSY) == [1024] * 4


def test_what_is_behind_is_forgotten_with_the_workload() -> None:
    run = Run()
    run.live([*FAN_OUT, WAITING], [WAITING], periods=BUSY)
    run.live([Row()], periods=200)
    assert isinstance(run.state, CriticalState)
    assert run.state.late == ()


def test_a_vcpu_without_any_allowed_cpu_is_nobodys_neighbour() -> None:
    nowhere = replace(WAITING, allowed=[])
    assert Run().live([*FAN_OUT, nowhere, nowhere], [nowhere], periods=5)[4:] == [LOWERED] * 2


def test_a_weight_that_somebody_raises_above_neutral_lends_nothing() -> None:
    computing = Row(40, RUNNING, ready_ms=40, allowed=[0], wakeups=0, external=0)
    run = Run()
    run.live([computing], [computing], periods=BUSY)
    raised = vcpu_id(1, 0)
    run.knobs = {**run.knobs, raised: run.knobs[raised]._replace(weight=3072)}
    assert run.live([computing], [computing]) == [1024]
    assert isinstance(run.state, CriticalState)
    assert "w0" not in dict(run.state.late)
