"""`critical`, fair by demand: which critical demand counts in the sum, from tables worked by hand."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from dasec.critical import CriticalParameters, CriticalState, Fairness
from dasec.critical.crowd import Crowd

from ..builders import Row
from .critical_life import BUSY, FAN_OUT, Run, background

WAITING = background(consumed_ms=15, ready_ms=65)
"""Always wants to run, and gets less than FAN_OUT's four, which run 19 ms together."""

RAISED = [7168] * 4

BY_DEMAND = CriticalParameters(fairness=Fairness.DEMAND)


def test_fan_out_with_more_than_a_fair_turn_counts_and_the_sum_by_demand_stays() -> None:
    # demand in a period: main 8 ms, helpers 10 each, background 2 × 80; scores 1 1 1 1 0 0
    # sum by demand 198 × 1024 = k × (7 × 38 + 160), so k = 475.9: background 475, the others 3331
    assert Run(BY_DEMAND).live([*FAN_OUT, WAITING, WAITING], periods=4) == [3331] * 4 + [475] * 2


def test_critical_vcpus_with_less_than_a_fair_turn_are_raised_and_lower_nobody() -> None:
    # they get 19 ms, one that always wants to run about 40: what they get they would get at any weight
    rows = [*FAN_OUT, background(consumed_ms=40, ready_ms=40)]
    assert Run(BY_DEMAND).live(rows, periods=4) == [*RAISED, 1024]


def test_background_that_seldom_wants_to_run_shows_a_fair_turn_as_well() -> None:
    # it runs for 5 ms only, and for as long as it waits: always wanting to, it would get half of the time
    rows = [*FAN_OUT, background(consumed_ms=5, ready_ms=5)]
    assert Run(BY_DEMAND).live(rows, periods=4) == [*RAISED, 1024]


def test_the_nearer_they_come_to_a_fair_turn_the_more_they_count() -> None:
    lowered = [
        Run(BY_DEMAND).live([*FAN_OUT, *[background(consumed_ms=each, ready_ms=80 - each)] * 2], periods=4)[4]
        for each in (22, 20.5, 20, 18)
    ]
    assert lowered[0] == 1024
    assert lowered == sorted(lowered, reverse=True)
    assert lowered[3] < 475 * 1.1


def test_a_neighbour_that_always_waits_is_a_witness() -> None:
    rows = [*FAN_OUT, background(consumed_ms=5, ready_ms=5)]
    crowded, *_, low = Run(BY_DEMAND).live(rows, [WAITING, WAITING], periods=4)
    assert crowded < RAISED[0] / 2
    assert low < 1024 / 2


def test_workloads_whose_bursts_come_and_go_stay_on_one_scale() -> None:
    # as in the load `step`: four workloads on two cores, critical threads for 11 to 17 ms of 80 in each, and
    # background for 0 to 3 bursts of 10 ms, each of which waits as long as it runs
    chance, run = random.Random(1), Run(BY_DEMAND)
    scales = set()
    for index in range(60):
        bursts = [chance.randint(0, 3) for _ in range(4)]
        parts = [chance.uniform(0.6, 0.9) for _ in range(4)]
        tables = [
            [
                *[replace(row, consumed_ms=row.consumed_ms * part) for row in FAN_OUT],
                Row(10 * each, ready_ms=10 * each, wakeups=each, external=0, chain_ms=0),
            ]
            for each, part in zip(bursts, parts, strict=True)
        ]
        run.live(*tables)
        if index >= 10:
            scales |= {run.weight(0, group=group) for group in range(4)}
    assert scales == {RAISED[0]}


def test_who_may_not_use_the_same_cpus_is_no_witness() -> None:
    here = [replace(row, allowed=[0]) for row in [*FAN_OUT, background(consumed_ms=5, ready_ms=5)]]
    there = [replace(WAITING, allowed=[1], core=1)] * 2
    assert Run(BY_DEMAND).live(here, there, periods=4) == [*RAISED, 1024]


def test_a_vcpu_alone_on_an_idle_cpu_does_not_make_its_workload_free_on_a_crowded_one() -> None:
    # 278 × 1024 = k × (7 × 38 + 240), so k = 562.6
    here = [replace(row, allowed=[0]) for row in [*FAN_OUT, WAITING, WAITING]]
    alone = Row(80, wakeups=0, external=0, chain_ms=0, allowed=[1], core=1)
    assert Run(BY_DEMAND).live([*here, alone], periods=4) == [3938] * 4 + [562] * 3


@pytest.mark.parametrize(("neutral", "part"), [(1024, 1 / 4), (3072, 1 / 2), (512, 1 / 7)])
def test_a_fair_turn_is_by_share_of_the_weight_that_one_competes_with(neutral: int, part: float) -> None:
    # a witness of weight 1024 that runs for a quarter of the time beside 3072
    period_ns = 80_000_000
    crowd = Crowd().after(period_ns, [(1024, period_ns // 4, period_ns * 3 // 4)], 85)
    assert crowd.turn_ns(neutral) == pytest.approx(period_ns * part, rel=1e-6)


def test_where_nobody_runs_nobody_knows_a_fair_turn() -> None:
    assert Crowd(80_000_000).turn_ns(1024) == 0


def test_how_crowded_it_was_is_forgotten_when_everybody_sleeps() -> None:
    run = Run(BY_DEMAND)
    run.live([*FAN_OUT, background()], periods=BUSY)
    run.live([Row()] * 5, periods=200)
    assert isinstance(run.state, CriticalState)
    assert run.state.crowds == ()


def test_who_got_more_than_its_due_pays_it_back() -> None:
    # helpers that hardly ran were given weight; now they compute
    run = Run(BY_DEMAND)
    run.live([*FAN_OUT, WAITING, WAITING], periods=BUSY)
    hog = Row(40, ready_ms=40, wakeups=1, external=0, chain_ms=0)
    rows = [hog, hog, hog, hog, background(), background()]
    run.live(rows)
    assert isinstance(run.state, CriticalState)
    (owed,) = [balance.owed for name, balance in run.state.balances if name == "w0"]
    assert owed > 0
    run.live(rows, periods=60)
    assert isinstance(run.state, CriticalState)
    assert (
        sum(balance.owed for _, balance in run.state.balances) * 20
        < sum(80_000_000 * 1024 for _ in range(4)) * 6
    )
