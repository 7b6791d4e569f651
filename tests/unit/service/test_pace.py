"""Deadlines never queue, and signals are seen only between periods."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dasec.budget import LONGEST_NS
from dasec.linux.uninterrupted import STOPPERS
from dasec.service.timer import HEARD, UNWATCHED_S, Timer, next_deadline, signals_held


@pytest.fixture(autouse=True)
def held() -> Iterator[None]:
    """As whoever waits with a Timer must."""
    with signals_held():
        yield


def test_a_period_in_time_skips_nothing() -> None:
    assert next_deadline(1000, 1079, 80) == (1080, 0)


def test_a_period_that_took_two_and_a_half_skips_two() -> None:
    assert next_deadline(0, 200, 80) == (240, 2)


@given(st.integers(0, 10**12), st.integers(0, 10**12), st.integers(1, 10**9))
def test_the_next_deadline_is_in_the_series_and_at_most_one_period_ahead(
    deadline_ns: int, took_ns: int, period_ns: int
) -> None:
    now_ns = deadline_ns + took_ns
    following_ns, skipped = next_deadline(deadline_ns, now_ns, period_ns)
    assert following_ns - deadline_ns == (skipped + 1) * period_ns
    assert now_ns < following_ns <= now_ns + period_ns


def test_a_clock_that_reads_early_skips_nothing() -> None:
    assert next_deadline(1000, 990, 80) == (1080, 0)


def test_the_limit_ends_the_series() -> None:
    pace = Timer(1_000_000, limit=3)
    assert [pace.wait() for _ in range(4)] == [True, True, True, False]


def test_a_rest_is_a_wait_of_several_periods_none_of_them_late() -> None:
    pace = Timer(5_000_000)
    before_ns = time.monotonic_ns()
    assert pace.wait(10)
    assert time.monotonic_ns() - before_ns >= 45_000_000
    assert pace.late == 0


def test_a_wait_of_one_period_is_one_sleep() -> None:
    looks: list[None] = []
    pace = Timer(5_000_000, meanwhile=lambda: looks.append(None))
    assert pace.wait()
    assert looks == []


def test_the_longest_rest_and_the_look_before_it_leave_no_second_without_a_check() -> None:
    assert UNWATCHED_S < 1 < LONGEST_NS / 1e9


def test_in_a_long_rest_somebody_looks_after_things_again_and_again_until_a_stop_signal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("dasec.service.timer.UNWATCHED_S", 0.01)
    looks: list[bool] = []

    def look() -> None:
        looks.append(pace.reload_due())
        if len(looks) == 2:
            signal.raise_signal(signal.SIGHUP)
        if len(looks) == 5:
            signal.raise_signal(signal.SIGTERM)

    pace = Timer(60_000_000_000, meanwhile=look)
    assert not pace.wait()
    assert looks == [False, False, True, False, False]


def test_a_stop_signal_ends_the_wait_at_once_and_not_before() -> None:
    pace = Timer(60_000_000_000)
    before_ns = time.monotonic_ns()
    signal.raise_signal(signal.SIGTERM)
    assert not pace.wait()
    assert time.monotonic_ns() - before_ns < 30_000_000_000


def test_a_hangup_shortens_no_wait_and_is_told_once() -> None:
    pace = Timer(50_000_000)
    before_ns = time.monotonic_ns()
    signal.raise_signal(signal.SIGHUP)
    assert pace.wait()
    assert time.monotonic_ns() - before_ns >= 49_000_000
    assert pace.reload_due()
    assert not pace.reload_due()
    assert pace.wait()
    assert not pace.reload_due()


def test_a_stop_signal_after_a_hangup_still_stops() -> None:
    pace = Timer(60_000_000_000)
    signal.raise_signal(signal.SIGHUP)
    signal.raise_signal(signal.SIGTERM)
    assert not pace.wait()


def test_signals_are_held_until_the_end() -> None:
    def now() -> set[signal.Signals | int]:
        return set(signal.pthread_sigmask(signal.SIG_BLOCK, ()))

    signal.pthread_sigmask(signal.SIG_UNBLOCK, HEARD)
    before = now()
    with signals_held():
        assert now() == before | HEARD
    assert now() == before


@pytest.mark.parametrize("number", sorted(STOPPERS))
def test_a_stop_before_the_first_wait_is_seen_there(number: signal.Signals) -> None:
    signal.raise_signal(number)
    assert not Timer(60_000_000_000).wait()


@pytest.mark.parametrize("number", sorted(HEARD))
def test_a_signal_while_all_is_put_back_is_no_other_wish(number: signal.Signals) -> None:
    heard: list[int] = []
    signal.pthread_sigmask(signal.SIG_UNBLOCK, HEARD)
    former = signal.signal(number, lambda number, _: heard.append(number))
    try:
        with signals_held():
            for stopper in (*STOPPERS, number):
                signal.raise_signal(stopper)
    finally:
        signal.signal(number, former)
    assert heard == []
