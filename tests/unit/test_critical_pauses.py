"""When `critical` lets wake-ups go unfollowed, and what ends that."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from dasec.critical import CriticalState
from dasec.critical.calm import PAUSE_LOOKS, PAUSE_NS
from dasec.model import IDLE, Limits, Period, Usage

from ..builders import Group, Row, period
from .test_critical import ASLEEP_ROW, FAN_OUT, Run, background, times

PERIOD_NS = 80_000_000
SMALL = background(consumed_ms=4, ready_ms=12)
"""Background that wants less of a core than what ends a pause."""


class Watch(Run):
    """Looks as late as it is asked to, and follows wake-ups or does not as it is asked to."""

    def look(self, *rows: Row, nested: bool = True, throttled_ms: int = 0) -> int:
        """One more look at a workload that does this in every period; how many periods it spans."""
        span = self.last.rest
        seen = self.seen(times(span, rows), 80 * span, nested)
        if throttled_ms:
            seen = replace(seen, limits={"w0": Limits(10**6, 0, throttled_ms * 10**6, {})})
        self.step(seen)
        return span

    def seen(self, rows: Sequence[Row], length_ms: float, nested: bool) -> Period:
        made = period(Group("w0", rows, nested=nested), length_ms=length_ms)
        if not self.last.unwatched:
            return made
        return replace(made, unwatched=True, usage={who: uncounted(used) for who, used in made.usage.items()})

    def until_paused(self, *rows: Row, nested: bool = True) -> int:
        """How many periods pass until nobody need be watched."""
        passed = 0
        while not self.last.unwatched:
            passed += self.look(*rows, nested=nested)
            assert passed < 1000
        return passed

    @property
    def is_pausing(self) -> bool:
        return self.last.unwatched


def uncounted(used: Usage) -> Usage:
    """As it is seen when wake-ups are not followed."""
    if used is IDLE:
        return used
    return used._replace(wakers=(), wakeups=None, external_wakeups=None, chain_ns=None, outward=None)


def test_where_nothing_is_done_for_seconds_wake_ups_are_followed_in_four_periods_of_sixteen() -> None:
    run = Watch()
    assert 1 < run.until_paused(*FAN_OUT) * 0.08 < 2
    looks = [(run.is_pausing, run.look(*FAN_OUT)) for _ in range(16)]
    assert looks == [*[(True, 2)] * 6, *[(False, 2)] * 2] * 2


def test_nothing_is_learned_and_nothing_changed_in_a_pause() -> None:
    run = Watch()
    run.until_paused(*FAN_OUT)
    before = run.state
    run.look(*FAN_OUT)
    assert isinstance(before, CriticalState)
    assert before.pause_ns == PAUSE_NS
    assert run.state == replace(before, pause_ns=PAUSE_NS - 2 * PERIOD_NS)
    assert not run.last.knobs
    assert run.last.can_wait


def test_whoever_begins_to_compute_ends_a_pause_at_the_next_look() -> None:
    run = Watch()
    run.until_paused(*FAN_OUT, ASLEEP_ROW)
    run.look(*FAN_OUT, background())
    assert not run.is_pausing
    passed = 0
    while run.weight(0) < 4 * run.weight(4):
        passed += run.look(*FAN_OUT, background())
    assert passed <= 5


def test_whoever_is_busy_as_ever_does_not_end_a_pause() -> None:
    run = Watch()
    run.until_paused(*FAN_OUT)
    run.look(*[replace(row, consumed_ms=1.9 * row.consumed_ms) for row in FAN_OUT])
    assert run.is_pausing


def test_a_limit_that_stops_somebody_ends_a_pause() -> None:
    run = Watch()
    run.until_paused(*FAN_OUT)
    run.look(*FAN_OUT, throttled_ms=3)
    assert not run.is_pausing


@pytest.mark.parametrize("nested", [False, True])
def test_as_long_as_a_weight_is_in_force_everybody_is_watched(nested: bool) -> None:
    run = Watch()
    for _ in range(4 * PAUSE_LOOKS):
        run.look(*FAN_OUT, background(), background(), nested=nested)
        assert not run.is_pausing
    assert run.weight(4) < 1024


@pytest.mark.parametrize("seen", range(17))
def test_a_step_too_small_to_end_a_pause_is_answered_within_25_periods(seen: int) -> None:
    run = Watch()
    run.until_paused(*FAN_OUT, ASLEEP_ROW)
    passed = 0
    while passed < seen:
        passed += run.look(*FAN_OUT, ASLEEP_ROW)
    passed = 0
    while passed == 0 or run.weight(0) < 4 * run.weight(4):
        passed += run.look(*FAN_OUT, SMALL)
    assert passed <= 25


def test_where_wake_ups_cannot_be_followed_again_whoever_was_preferred_is_so_no_more() -> None:
    run = Watch()
    rows = [*FAN_OUT, background(), background()]
    for _ in range(10):
        run.look(*rows)
    assert run.weight(0) > 4 * run.weight(4)
    blind = replace(run.seen(rows, 80, nested=True), unwatched=True)
    blind = replace(blind, usage={who: uncounted(used) for who, used in blind.usage.items()})
    run.step(blind, 60)
    assert [run.weight(row) for row in range(6)] == pytest.approx([1024] * 6, rel=0.2)
