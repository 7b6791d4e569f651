"""When `critical` lets wake-ups go unfollowed, and what ends that."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from dasec.bandwidth.parameters import BandwidthParameters
from dasec.critical import Critical, CriticalParameters, CriticalState
from dasec.critical.calm import LONGEST_LOOK_NS, PAUSE_LOOKS, PAUSE_NS
from dasec.guard import Guarded
from dasec.model import Knobs, Limits, OwnLimit, Period, VcpuId
from dasec.policy import Policy

from ..builders import Group, Row, period, unwatched, vcpu_id
from .critical_life import ASLEEP_ROW, FAN_OUT, Run, background, short, times

PERIOD_NS = 80_000_000
WAITING = background(consumed_ms=15, ready_ms=25)
SMALL = background(consumed_ms=4, ready_ms=12)
"""Background that wants less of a core than what ends a pause."""


class Watch(Run):
    """Looks as late as it is asked to, or as its budget lets it, and follows wake-ups as it is asked to."""

    def __init__(self, policy: Policy | None = None, least: int = 1) -> None:
        super().__init__()
        if policy is not None:
            self.policy, self.state = policy, policy.initial_state()
        self.least = least
        self.first_knobs: Mapping[VcpuId, Knobs] = {}

    @property
    def span(self) -> int:
        """How many periods the next look spans."""
        return max(self.last.rest, self.least)

    @property
    def is_pausing(self) -> bool:
        return self.last.unwatched

    def look(self, *rows: Row, nested: bool = True) -> int:
        """One more look at a workload that does this in every period; how many periods it spans."""
        span = self.span
        self.step(self.seen(times(span, rows), 80 * span, nested))
        return span

    def look_at_a_step(self, *new: Row, of: int) -> None:
        """One more look, at the end of which background has computed for so many periods."""
        rows = [*times(self.span, FAN_OUT), *times(of, new)]
        self.step(self.seen(rows, 80 * self.span, nested=True))

    def seen(self, rows: Sequence[Row], length_ms: float, nested: bool) -> Period:
        made = period(Group("w0", rows, nested=nested), length_ms=length_ms)
        self.first_knobs = self.first_knobs or made.knobs
        return unwatched(made) if self.last.unwatched else made

    def until_paused(self, *rows: Row, nested: bool = True) -> int:
        """How many periods pass until nobody need be watched."""
        passed = 0
        while not self.last.unwatched:
            passed += self.look(*rows, nested=nested)
            assert passed < 1000
        return passed


GUARDED = Guarded(Critical())


@pytest.mark.parametrize("policy", [Critical(), GUARDED], ids=["critical", "guarded"])
def test_where_nothing_is_done_for_seconds_wake_ups_are_followed_in_four_periods_of_sixteen(
    policy: Policy,
) -> None:
    run = Watch(policy)
    assert 8 < run.until_paused(*FAN_OUT) * 0.08 < 10
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


def test_nobody_is_judged_by_a_period_that_was_not_watched_though_it_should_have_been() -> None:
    run = Watch()
    for _ in range(8):
        run.step(unwatched(period(Group("w0", [*FAN_OUT, background()], nested=True))))
        assert run.state == CriticalState()
        assert (run.last.unwatched, run.last.rest, run.last.knobs) == (False, 1, {})


@pytest.mark.parametrize("policy", [Critical(), GUARDED], ids=["critical", "guarded"])
def test_whoever_begins_to_compute_ends_a_pause_at_the_next_look(policy: Policy) -> None:
    run = Watch(policy)
    run.until_paused(*FAN_OUT, ASLEEP_ROW)
    run.look(*FAN_OUT, background())
    assert (run.is_pausing, run.last.rest) == (False, 1)
    passed = 0
    while run.weight(0) < 4 * run.weight(4):
        passed += run.look(*FAN_OUT, background())
    assert passed <= 5


def test_a_burst_that_nobody_waits_for_is_watched_for_four_looks_only() -> None:
    run = Watch()
    run.until_paused(*FAN_OUT)
    run.look(*[replace(row, consumed_ms=5 * row.consumed_ms) for row in FAN_OUT])
    assert not run.is_pausing
    assert run.until_paused(*FAN_OUT) == 1 + 2 * 3


def test_whoever_is_busy_as_ever_does_not_end_a_pause() -> None:
    run = Watch()
    run.until_paused(*FAN_OUT)
    run.look(*[replace(row, consumed_ms=1.9 * row.consumed_ms) for row in FAN_OUT])
    assert run.is_pausing


def test_a_limit_that_stops_somebody_ends_a_pause() -> None:
    run = Watch()
    run.until_paused(*FAN_OUT)
    limits = {"w0": Limits(10**6, 0, 3_000_000, {})}
    run.step(replace(run.seen(times(2, FAN_OUT), 160, nested=True), limits=limits))
    assert not run.is_pausing


@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize("knob", ["weight", "latency_us"])
def test_as_long_as_somebody_is_preferred_everybody_is_watched(nested: bool, knob: str) -> None:
    """By the one or the other knob; this host has no other."""
    run = Watch()
    other = {"weight": "latency_us", "latency_us": "weight"}[knob]
    rows = [replace(row, **{other: None}) for row in (*FAN_OUT, background(), background())]  # type: ignore[arg-type]
    for _ in range(2 * PAUSE_LOOKS):
        run.look(*rows, nested=nested)
        assert not run.is_pausing
    assert run.knobs[vcpu_id(0, 4)] != run.first_knobs[vcpu_id(0, 4)]


def test_as_long_as_a_limit_binds_that_may_be_capped_everybody_is_watched() -> None:
    policy = Critical(CriticalParameters(), BandwidthParameters(caps=True))
    rows = [replace(row, weight=None, latency_us=None) for row in (*FAN_OUT, background())]
    limits = {"w0": Limits(10**6, 0, 5_000_000, {vcpu_id(0, row): OwnLimit(0, 0) for row in range(5)})}
    state = policy.initial_state()
    for _ in range(2 * PAUSE_LOOKS):
        decision = policy.decide(replace(period(Group("w0", rows)), limits=limits), state)
        state = decision.state
        assert not decision.unwatched
    assert isinstance(state, CriticalState)
    assert state.holdings


def fed(chain: float) -> Row:
    """A server fed from outside, so much of whose time continues what somebody else began."""
    row = short(4, external=8)
    return replace(row, chain_ms=(row.chain_ms or 0) * chain)


@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize(
    "services",
    [FAN_OUT, [fed(1), fed(1), fed(0.99), fed(0.99)], [fed(1), fed(1), fed(1), fed(0.95)]],
    ids=["alike", "nearly", "but one"],
)
def test_once_nobody_is_preferred_any_more_weights_are_as_they_were_and_there_are_pauses_again(
    nested: bool, services: Sequence[Row]
) -> None:
    run = Watch()
    for _ in range(PAUSE_LOOKS):
        run.look(*services, background(), nested=nested)
    assert run.weight(0) > 4 * run.weight(4)
    run.until_paused(*services, ASLEEP_ROW, nested=nested)
    assert [run.weight(row) for row in range(5)] == [1024] * 5
    watched = [run.look(*services, ASLEEP_ROW, nested=nested) for _ in range(400) if not run.is_pausing]
    assert len(watched) < 120


def test_threads_that_always_want_to_run_do_not_keep_a_calm_host_watched() -> None:
    run, chance = Watch(), random.Random(1)
    computes = Row(40, ready_ms=40, wakeups=0, external=0, chain_ms=0)
    watched = 0
    for _ in range(400):
        uneven = 20 * chance.random()
        rows = [replace(computes, consumed_ms=40 + uneven, ready_ms=40 - uneven), computes]
        watched += not run.is_pausing
        run.look(*rows, nested=False)
    assert watched < 200


@pytest.mark.parametrize("every", [20, 50])
def test_a_thread_that_hardly_runs_does_not_keep_a_calm_host_watched(every: int) -> None:
    run = Watch()
    rare = Row(1, wakeups=1, external=1, chain_ms=1)
    watched = 0
    for look in range(600):
        watched += not run.is_pausing
        last = rare if look % every == 0 else ASLEEP_ROW
        rows = [*times(run.span, FAN_OUT), last]
        run.step(run.seen(rows, 80 * run.span, nested=True))
    assert 100 < watched < 400


@pytest.mark.parametrize("off_ms", [-0.2, 0, 0.2])
@pytest.mark.parametrize(("least", "looks"), [(2, 6), (4, 3)])
def test_looks_that_come_a_little_early_or_late_make_no_difference(
    off_ms: float, least: int, looks: int
) -> None:
    run, pauses = Watch(least=least), []
    for _ in range(3 * PAUSE_LOOKS):
        pauses.append(run.is_pausing)
        run.step(run.seen(times(least, FAN_OUT), 80 * least + off_ms, nested=True))
    first = pauses.index(True)
    assert pauses[first : first + 4 * (looks + 2)] == [*[True] * looks, *[False] * 2] * 4


def test_one_late_look_in_a_while_is_made_up_for_by_a_few_others() -> None:
    run = Watch()
    watched = 0
    for look in range(600):
        watched += not run.is_pausing
        late_ms = 400 if look % 50 == 0 else 0
        run.step(run.seen(times(run.span, FAN_OUT), 80 * run.span + late_ms, nested=True))
    assert watched < 300


@pytest.mark.parametrize("least", [1, 2, 3, 4, 5, 8, 12, 20])
@pytest.mark.parametrize("new", [WAITING, SMALL], ids=["waiting", "small"])
def test_a_step_is_answered_within_25_periods_whenever_it_comes_and_however_late_the_looks_are(
    new: Row, least: int
) -> None:
    for looks in range(8):  # since the last one in which everybody was watched
        for of in range(1, max(least, 2) + 1):
            run = Watch(least=least)
            for _ in range(2 * PAUSE_LOOKS + looks):
                run.look(*FAN_OUT, ASLEEP_ROW)
            passed = min(of, run.span)
            run.look_at_a_step(new, of=passed)
            while run.weight(0) < 4 * run.weight(4):
                passed += run.look(*FAN_OUT, new)
            assert passed <= 25, (looks, of)


def test_where_looks_are_far_apart_everybody_is_watched() -> None:
    run = Watch(least=5)
    assert run.least * PERIOD_NS > LONGEST_LOOK_NS
    for _ in range(2 * PAUSE_LOOKS):
        run.look(*FAN_OUT)
        assert not run.is_pausing
