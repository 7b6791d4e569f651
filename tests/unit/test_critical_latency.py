"""Under `critical`, who yields may start later; nobody else's rescheduling latency is touched."""

from __future__ import annotations

from dataclasses import replace

from dasec.critical import CriticalParameters
from dasec.critical.latency import delay
from dasec.model import Knobs, Period

from ..builders import Group, Row, period, vcpu_id
from .critical_life import BUSY, FAN_OUT, Run, background, short

LATER = [4, 4, 4, 4, 5]
AS_FOUND = [4, 4, 4, 4, 4]


def latencies_ms(run: Run) -> list[float | None]:
    return [run.latency_ms(row) for row in range(len(FAN_OUT) + 1)]


def test_background_may_start_later_once_it_is_judged() -> None:
    run = Run()
    run.live([*FAN_OUT, background()], periods=3)
    assert latencies_ms(run) == AS_FOUND
    run.live([*FAN_OUT, background()])
    assert latencies_ms(run) == LATER


def test_one_that_is_as_long_as_the_kernel_takes_stays() -> None:
    run = Run()
    run.live([*FAN_OUT, background(latency_us=100_000)], periods=BUSY)
    assert latencies_ms(run) == [4, 4, 4, 4, 100]


def test_who_is_waited_for_later_on_has_what_it_had() -> None:
    run = Run()
    run.live([*FAN_OUT, background()], periods=BUSY)
    joined = [replace(FAN_OUT[0], woken_by=[(1, 8), (2, 8), (3, 8), (4, 8)]), *FAN_OUT[1:], short(5, (0, 8))]
    run.live(joined, periods=BUSY)
    assert latencies_ms(run) == AS_FOUND


def test_a_sleeper_that_is_forgotten_has_what_it_had() -> None:
    run = Run()
    run.live([*FAN_OUT, background()], periods=BUSY)
    run.live([*FAN_OUT, Row()], periods=60)
    assert latencies_ms(run) == AS_FOUND


def test_where_there_is_no_critical_path_any_more_all_have_what_they_had() -> None:
    run = Run()
    run.live([*FAN_OUT, background()], periods=BUSY)
    run.live([background()] * 5, periods=60)
    assert latencies_ms(run) == AS_FOUND


def test_background_yields_to_the_shortest_bursts_too() -> None:
    run = Run()
    hurried = [
        short(0.4, (1, 8), (2, 8), (3, 8), timer=8),
        short(0.5, (0, 8)),
        short(0.5, (0, 8)),
        short(0.5, (0, 8)),
    ]
    run.live([*hurried, background()], periods=BUSY)
    assert latencies_ms(run) == LATER


def test_where_no_weight_is_ours_to_write_background_yields_all_the_same() -> None:
    run = Run()
    rows = [replace(row, weight=None) for row in (*FAN_OUT, background())]
    run.step(period(Group("w0", rows)), BUSY)
    assert latencies_ms(run) == LATER
    assert {knobs.weight for knobs in run.knobs.values()} == {None}


def test_it_can_be_switched_off() -> None:
    run = Run(CriticalParameters(yield_latency_percent=100))
    run.live([*FAN_OUT, background()], periods=BUSY)
    assert latencies_ms(run) == AS_FOUND
    assert run.weight(0) > run.weight(4)


def test_none_changes_where_the_host_has_no_such_knob() -> None:
    run = Run()
    run.live([replace(row, latency_us=None) for row in (*FAN_OUT, background())], periods=BUSY)
    assert latencies_ms(run) == [None] * 5
    assert run.weight(0) > run.weight(4)


def test_none_changes_where_nobody_counts_wakeups() -> None:
    run = Run()
    blind = [replace(row, woken_by=(), wakeups=None, external=None, chain_ms=None) for row in FAN_OUT]
    run.live([*blind, Row(20, ready_ms=20)], periods=BUSY)
    assert latencies_ms(run) == AS_FOUND


def test_they_are_written_also_where_weights_are_not_ours() -> None:
    run = Run()
    run.step(period(Group("w0", [replace(row, weight=None) for row in (*FAN_OUT, background())])), periods=4)
    assert latencies_ms(run) == LATER


def test_a_score_between_a_quarter_and_a_half_changes_nothing() -> None:
    def wanted_ms(score: int, now_us: int) -> float | None:
        made: Period = period(Group("a", [Row(latency_us=now_us)]))
        vcpu = vcpu_id(0, 0)
        yielding = ((vcpu, 4_000_000),) if now_us == 5000 else ()
        found = delay(made, {vcpu: score}, yielding, 125).wanted_ns.get(vcpu)
        return None if found is None else found / 1e6

    assert [wanted_ms(score, 4000) for score in (249, 250, 499)] == [5, None, None]
    assert [wanted_ms(score, 5000) for score in (249, 499, 500)] == [None, None, 4]


def test_a_knob_that_is_nobodys_for_one_look_is_as_found_when_it_comes_back() -> None:
    run, yielding = Run(), vcpu_id(0, 4)
    run.live([*FAN_OUT, background()], periods=BUSY)
    for theirs in (Knobs(None, None, None), Knobs(2048, 8_000_000, None)):
        run.knobs = {**run.knobs, yielding: theirs}
        run.step(period(Group("w0", [*FAN_OUT, background()])))
    assert run.latency_ms(4) == 10
    run.live([background()] * 5, periods=100)
    assert (run.latency_ms(4), run.weight(4)) == (8, 2048)
