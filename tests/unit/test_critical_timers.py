"""Under `critical`, short bursts suffice where only timers wake those that serve."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dasec.critical import CriticalParameters, Fairness
from dasec.model import Knob

from ..builders import Row
from .test_critical import FAN_OUT, Run, background, short


def asks_itself(run_ms: float, bursts: int, siblings: int = 0) -> Row:
    """A thread that sleeps until its next request is due, and now and then for a lock."""
    return short(run_ms, *([(0, siblings)] if siblings else []), timer=bursts - siblings)


def weighed(*rows: Row, nested: bool = True, parameters: CriticalParameters | None = None) -> list[int]:
    run = Run(parameters)
    run.live(rows, periods=6, nested=nested)
    return [run.weight(row) for row in range(len(rows))]


def test_who_asks_itself_goes_before_background_with_long_bursts() -> None:
    serves, too, bursts = weighed(asks_itself(8, 8), asks_itself(6, 6), background())
    assert serves == too > 5 * bursts


def test_without_a_group_around_it_nobody_is_raised() -> None:
    serves, bursts = weighed(asks_itself(8, 8), background(), nested=False)
    assert serves == 1024 > 3 * bursts


def test_requests_of_several_milliseconds_are_told_from_bursts_of_ten() -> None:
    serves, bursts = weighed(asks_itself(14.4, 4), background())  # 3.6 ms each
    assert serves > 5 * bursts


def test_background_yields_its_core_to_it() -> None:
    run = Run()
    run.live([asks_itself(8, 8), background()], periods=6, nested=True)
    assert run.latency_ms(1) == 5


def test_locks_that_it_takes_now_and_then_tell_nothing() -> None:
    """TailBench's masstree: one wake-up in twenty is by a sibling, to one of two threads in half a second."""
    serves, waits, bursts = weighed(asks_itself(20, 20), asks_itself(20, 20, siblings=1), background())
    assert serves == waits > 5 * bursts


@pytest.mark.parametrize("ms", [1.9, 2.5])
def test_threads_that_all_serve_are_alike_though_some_have_more_to_do(ms: float) -> None:
    assert weighed(asks_itself(1.5 * 10, 10), asks_itself(ms * 10, 10), asks_itself(2 * 10, 10)) == [1024] * 3


def test_where_all_compute_nobody_is_preferred() -> None:
    assert weighed(background(), background(), asks_itself(70, 7)) == [1024] * 3


def test_short_bursts_of_timers_are_background_where_siblings_wait_for_others() -> None:
    run = Run()
    run.live([*FAN_OUT, asks_itself(5, 10)], periods=6, nested=True)
    assert run.weight(0) > 5 * run.weight(4)


def test_a_server_that_clients_wake_goes_before_short_bursts_of_timers() -> None:
    run = Run()
    run.live([short(8, external=8), asks_itself(5, 10)], periods=6, nested=True)
    assert run.weight(0) > 5 * run.weight(1)


def test_who_gives_time_away_does_not_guess() -> None:
    """A virtual machine that computes has timers, too, and nobody in it would gain."""
    giving = CriticalParameters(fairness=Fairness.GIVING)
    ticks, computes = asks_itself(1, 10), replace(background(), consumed_ms=40, ready_ms=40)
    assert weighed(ticks, computes, nested=False, parameters=giving) == [1024] * 2


def test_the_reason_says_how_short_its_bursts_are() -> None:
    run = Run()
    run.live([asks_itself(8, 8), background()], periods=4, nested=True)
    (reason,) = [one for one in run.last.reasons if one.knob is Knob.WEIGHT and one.rule == "critical.path"]
    assert dict(reason.inputs)["short"] == dict(reason.inputs)["score"] == 1000
