"""Caps in a small simulation of CFS bandwidth control: the limit holds, the critical never stop."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dasec.bandwidth.rates import LEAST_PPM, PERIODS_US, Cap, cap_of, rate_ppm
from dasec.bandwidth.rule import TOKEN_NS, TOKENS, caps_after
from dasec.model import Limits, OwnLimit, Period, ThreadState, Usage, VcpuId

from .cfs import LOOK_US, Thread, World, busy, hog, period_of

S = 1_000_000


def vcpu(number: int) -> VcpuId:
    return VcpuId(1, number, 7)


def world(limit: float, critical: list[int], hogs: int) -> World:
    served = [Thread(vcpu(at), busy(percent)) for at, percent in enumerate(critical)]
    others = [Thread(vcpu(100 + at), hog) for at in range(hogs)]
    return World(int(limit * S), [*served, *others], frozenset(one.id for one in served))


def without(one: World) -> World:
    one.managed = False
    return one


def test_a_plain_limit_stops_the_critical_vcpu_in_the_simulation() -> None:
    plain = without(world(2, [30], 3))
    plain.run(10 * S)
    assert plain.threads[0].stopped_us > 0.3 * S


@pytest.mark.parametrize(
    ("limit", "critical", "hogs"),
    [(2, [30], 3), (4, [30, 30], 5), (2, [60], 3), (0.5, [6], 3), (1.5, [20], 7)],
)
def test_where_a_limit_binds_the_critical_never_stop_and_the_rest_lose_little(
    limit: float, critical: list[int], hogs: int
) -> None:
    capped = world(limit, critical, hogs)
    capped.run(5 * S)
    stopped = [thread.stopped_us for thread in capped.threads[: len(critical)]]
    used, ran = capped.used_us(), [thread.ran_us for thread in capped.threads]
    capped.run(10 * S)
    assert [thread.stopped_us for thread in capped.threads[: len(critical)]] == stopped
    assert capped.used_us() - used <= limit * 10 * S * 1.01
    background = sum(now.ran_us - then for now, then in zip(capped.threads, ran, strict=True)) - sum(
        now.ran_us - then for now, then in zip(capped.threads, ran[: len(critical)], strict=False)
    )
    left = limit * 10 * S - sum(critical) / 100 * 10 * S
    assert background >= 0.92 * left
    assert capped.used_us() - used >= 0.97 * limit * 10 * S


def test_arrivals_by_chance_are_hardly_ever_stopped() -> None:
    chance = random.Random(1)
    capped = world(2, [30], 3)
    capped.threads[0].arrives = lambda now: 2000 if chance.random() < 0.0375 else 0
    plain = without(world(2, [30], 3))
    plain.threads[0].arrives = lambda now: 2000 if chance.random() < 0.0375 else 0
    capped.run(30 * S)
    plain.run(30 * S)
    assert capped.threads[0].stopped_us < 0.1 * plain.threads[0].stopped_us
    assert capped.used_us() >= 0.95 * 60 * S


@pytest.mark.parametrize(("before", "after"), [(10, 50), (20, 70), (20, 95)])
def test_a_step_of_critical_load_is_met_within_three_looks_and_the_rest_goes_to_the_background(
    before: int, after: int
) -> None:
    low, high = busy(before), busy(after)
    capped = world(2, [before], 3)
    capped.threads[0].arrives = lambda now: (high if now >= 5 * S else low)(now)
    capped.run(5 * S + 3 * LOOK_US)
    stopped = capped.threads[0].stopped_us
    background = sum(thread.ran_us for thread in capped.threads[1:])
    capped.run(5 * S)
    assert capped.threads[0].stopped_us == stopped
    background = sum(thread.ran_us for thread in capped.threads[1:]) - background
    assert background >= 0.9 * (2 - after / 100) * 5 * S


def known_by_sleep(one: World) -> World:
    """Its first thread is found to be waited for while it has slept within four looks."""
    slept_us = 0

    def look(period: Period) -> None:
        nonlocal slept_us
        slept_us = slept_us if one.threads[0].backlog_us else one.now_us
        one.waited_for = frozenset({vcpu(0)} if one.now_us - slept_us <= 4 * LOOK_US else ())

    one.seen = look
    return one


def test_who_has_a_backlog_after_a_step_and_never_sleeps_is_waited_for_still() -> None:
    low, high = busy(20), busy(95)
    capped = known_by_sleep(world(2, [20], 3))
    capped.threads[0].arrives = lambda now: (high if now >= 5 * S else low)(now)
    capped.threads[0].backlog_us = 0
    capped.run(5 * S + 3 * LOOK_US)
    stopped = capped.threads[0].stopped_us
    capped.run(2 * S)
    assert capped.threads[0].stopped_us == stopped
    assert capped.threads[0].own is None


def test_caps_stay_where_nobody_is_found_to_be_waited_for_any_more_and_go_after_two_seconds() -> None:
    capped = world(2, [30], 3)
    capped.run(3 * S)
    capped.waited_for = frozenset()
    capped.run(S)
    assert [thread.own is None for thread in capped.threads] == [True, False, False, False]
    capped.run(2 * S)
    assert not any(thread.own for thread in capped.threads)


def test_who_is_behind_from_the_start_makes_up_for_it_and_the_rest_goes_to_the_background() -> None:
    capped = world(1, [60], 3)
    served, capped.waited_for = capped.waited_for, frozenset(thread.id for thread in capped.threads)
    capped.run(10 * LOOK_US)
    assert capped.threads[0].backlog_us > 0.2 * S
    capped.waited_for = served
    capped.run(3 * S)
    stopped, ran = capped.threads[0].stopped_us, [thread.ran_us for thread in capped.threads]
    capped.run(10 * S)
    assert capped.threads[0].stopped_us == stopped
    served_us, *background = [now.ran_us - then for now, then in zip(capped.threads, ran, strict=True)]
    assert sum(background) >= 0.92 * (10 * S - served_us)


def test_a_backlog_of_more_than_the_limit_leaves_the_others_their_caps() -> None:
    capped = world(1, [60], 3)
    capped.threads[0].backlog_us = S
    capped.run(LOOK_US)
    for _ in range(30):
        capped.run(LOOK_US)
        assert all(thread.own for thread in capped.threads[1:])


def test_below_a_small_limit_a_guess_leaves_each_of_the_others_the_smallest_cap() -> None:
    capped = world(0.3, [15], 4)
    capped.run(3 * LOOK_US)
    assert [thread.cap_ppm >= LEAST_PPM for thread in capped.threads] == [False, True, True, True, True]


def test_who_waited_for_a_core_instead_of_using_its_cap_wants_as_much_as_the_others() -> None:
    capped = world(1, [30], 3)
    capped.run(2 * S)
    held, last = capped.holding, capped.threads[-1]
    assert held is not None

    def level_after(ready_ns: int) -> int:
        usage = {thread.id: Usage(LOOK_US * 220, 0, 1, ThreadState.RUNNING, 0) for thread in capped.threads}
        usage[last.id] = Usage(0, ready_ns, 1, ThreadState.READY, 0)
        own = {thread.id: OwnLimit(thread.cap_ppm, 0) for thread in capped.threads}
        made = period_of(usage, Limits(S, 0, 0, own), LOOK_US * 1000)
        after = caps_after(
            made, made.workloads[0], capped.waited_for, held._replace(earned_ns=TOKENS * TOKEN_NS)
        )
        assert after.holding is not None
        return after.holding.level_ppm

    assert level_after(LOOK_US * 1000) <= held.level_ppm < level_after(0)


def test_who_only_computes_from_now_on_is_soon_one_of_the_others() -> None:
    capped = known_by_sleep(world(2, [20], 3))
    capped.run(3 * S)
    capped.threads[0].arrives = hog
    capped.run(4 * S)
    assert not any(thread.own for thread in capped.threads)
    assert capped.holding is None or not capped.holding.served


def test_there_are_no_caps_where_no_limit_binds() -> None:
    free = world(4, [30], 3)
    free.run(3 * S)
    assert free.writes == []


def test_there_are_no_caps_where_nobody_or_everybody_is_waited_for() -> None:
    alike = world(2, [], 4)
    alike.run(3 * S)
    served = world(2, [90, 90, 90], 0)
    served.run(3 * S)
    assert (alike.writes, served.writes) == ([], [])


def test_there_are_no_caps_where_those_that_may_be_capped_only_sleep() -> None:
    computing = [Thread(vcpu(at), hog) for at in range(3)]
    sleeper = Thread(vcpu(100), lambda now_us: 0)
    asleep = World(int(0.4 * S), [*computing, sleeper], frozenset(one.id for one in computing))
    asleep.run(3 * S)
    assert asleep.writes == []


def test_caps_go_within_two_looks_after_the_limit_stops_to_bind() -> None:
    capped = world(2, [30], 3)
    capped.run(2 * S)
    assert all(thread.own for thread in capped.threads[1:])
    for thread in capped.threads[1:]:
        thread.arrives, thread.backlog_us = busy(20), 0
    capped.run(3 * LOOK_US)  # one of them is over before anything can be seen
    assert not any(thread.own for thread in capped.threads)


def test_a_limit_that_flaps_costs_a_bounded_number_of_writes() -> None:
    capped = world(2, [30], 3)
    for _ in range(100):
        for thread in capped.threads[1:]:
            thread.arrives = hog
        capped.run(4 * LOOK_US)
        for thread in capped.threads[1:]:
            thread.arrives, thread.backlog_us = busy(10), 0
        capped.run(4 * LOOK_US)
    seconds = 100 * 8 * LOOK_US // S
    handed_out = sum(1 for _, _, ppm in capped.writes if ppm)
    assert 0 < handed_out <= 3 * (TOKENS + seconds + 1)


def test_who_is_waited_for_now_loses_its_cap_at_once() -> None:
    capped = world(2, [30], 3)
    capped.run(2 * S)
    capped.waited_for = frozenset((vcpu(0), vcpu(100)))
    capped.run(LOOK_US)
    assert [thread.own is None for thread in capped.threads] == [True, True, False, False]


@settings(max_examples=15, deadline=None)
@given(
    limit=st.integers(8, 40),
    critical=st.lists(st.integers(5, 60), min_size=1, max_size=3),
    hogs=st.integers(1, 5),
)
def test_no_workload_uses_more_than_its_limit(limit: int, critical: list[int], hogs: int) -> None:
    capped = world(limit / 10, critical, hogs)
    capped.run(10 * S)
    assert capped.used_us() <= limit / 10 * 10 * S * 1.01


@given(ppm=st.integers(LEAST_PPM, 1_000_000))
def test_a_cap_is_never_above_its_rate_and_hardly_below(ppm: int) -> None:
    cap = cap_of(ppm)
    assert cap.quota_us >= 1000
    assert cap.period_us in PERIODS_US
    assert 0.998 * ppm - 1 <= rate_ppm(cap) <= ppm
    assert isinstance(cap, Cap)
