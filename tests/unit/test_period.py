"""Two snapshots become a period: the arithmetic, and the accidents of a live host."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dasec.model import (
    IDLE,
    Core,
    Counters,
    Limits,
    OwnLimit,
    Snapshot,
    ThreadState,
    Usage,
    VcpuId,
)
from dasec.period import between, column, seat

from ..builders import ASLEEP, MS, READY, RUNNING, Group, Row, period, snapshot, vcpu_id

A, B, C = vcpu_id(0, 0), vcpu_id(0, 1), vcpu_id(0, 2)
OTHER = vcpu_id(1, 0)


def counters(
    on_cpu_ms: float,
    ready_ms: float,
    dispatches: int,
    state: ThreadState = RUNNING,
    core: int = 0,
    preemptions: int | None = None,
    late_wakeups: int | None = None,
    wakers: tuple[tuple[VcpuId, int], ...] | None = None,
) -> Counters:
    return Counters(
        round(on_cpu_ms * MS),
        round(ready_ms * MS),
        dispatches,
        state,
        Core(core),
        preemptions,
        late_wakeups,
        wakers,
    )


def usage_of(before: Counters, after: Counters, latency_us: float | None = 4000) -> Usage | None:
    """What A did between the two, over 80 ms."""
    earlier, later = snapshot(1000, {A: before}, latency_us=latency_us), snapshot(1080, {A: after})
    return between(1, earlier, later).usage.get(A)


def test_usage_is_the_difference_of_the_totals() -> None:
    #            on CPU   ready   dispatches
    # before      500.0    20.0          100
    # after       530.5    22.0          107
    # difference   30.5     2.0            7; 2.0 ms ready is no whole latency of 4 ms: no conflict
    used = usage_of(counters(500, 20, 100), counters(530.5, 22, 107, READY))
    assert used == Usage(30_500_000, 2_000_000, 7, READY, 0)


def test_a_period_is_as_long_as_the_clock_says_and_keeps_what_is_there_now() -> None:
    before, after = snapshot(1000, {A: counters(0, 0, 0)}), snapshot(1083, {A: counters(1, 0, 1, core=1)})
    made = between(7, before, after)
    assert (made.index, made.length_ns) == (7, 83_000_000)
    assert made.core_of == {A: 1}
    assert (made.topology, made.workloads, made.knobs) == (after.topology, after.workloads, after.knobs)


def test_who_woke_whom_is_unknown_in_a_period_in_which_nobody_was_watched() -> None:
    totals = counters(10, 0, 5, wakers=((B, 3),))._replace(wakeups=5, chain_ns=9 * MS)
    later = counters(14, 1, 7, wakers=((B, 4),))._replace(wakeups=6, chain_ns=10 * MS)
    before, after = snapshot(1000, {A: totals, B: totals}), snapshot(1080, {A: later, B: totals})
    watched, not_watched = between(1, before, after), between(1, before, replace(after, unwatched=True))
    assert (watched.unwatched, not_watched.unwatched) == (False, True)
    assert watched.usage[A] == Usage(4 * MS, MS, 2, RUNNING, 0, ((B, 1),), 1, None, MS, None)
    assert not_watched.usage[A] == Usage(4 * MS, MS, 2, RUNNING, 0)
    assert not_watched.usage[B] is IDLE or not_watched.usage[B] == Usage(0, 0, 0, RUNNING, 0)


@pytest.mark.parametrize("later_ms", [1000, 999])
def test_a_clock_that_did_not_advance_is_refused_with_both_readings(later_ms: float) -> None:
    with pytest.raises(ValueError, match=f"period 3: the clock went from 1000000000 to {later_ms}000000 ns"):
        between(3, snapshot(1000, {}), snapshot(later_ms, {}))


def test_a_sleeper_shares_the_one_idle_usage() -> None:
    asleep = counters(500, 20, 100, ASLEEP)
    same, equal = usage_of(asleep, asleep), usage_of(asleep, counters(500, 20, 100, ASLEEP))
    assert same is IDLE
    assert equal is IDLE


@pytest.mark.parametrize("state", [READY, RUNNING, ThreadState.UNKNOWN])
def test_a_vcpu_whose_totals_stand_still_is_no_sleeper_unless_it_is_idle(state: ThreadState) -> None:
    standing_still = counters(500, 20, 100, state)
    assert usage_of(standing_still, standing_still) == Usage(0, 0, 0, state, 0)


@pytest.mark.parametrize(
    "after",
    [
        counters(499.9, 20, 100),
        counters(600, 19.9, 100),
        counters(600, 30, 99),
        counters(600, 30, 110, preemptions=4, late_wakeups=9),
        counters(600, 30, 110, preemptions=9, late_wakeups=4),
        counters(600, 30, 110, preemptions=9, late_wakeups=9, wakers=((B, 2),)),
    ],
    ids=["time on the core", "time ready", "dispatches", "preemptions", "late wake-ups", "wake-ups"],
)
def test_a_vcpu_one_of_whose_totals_went_backwards_counts_as_new(after: Counters) -> None:
    before = counters(500, 20, 100, preemptions=5, late_wakeups=5, wakers=((B, 3),))
    other = counters(0, 0, 0, ASLEEP)
    made = between(1, snapshot(0, {A: before, B: other}), snapshot(80, {A: after, B: other}))
    assert A not in made.usage
    assert A in made.knobs
    assert A in made.core_of


def test_totals_that_stay_the_same_are_no_reset() -> None:
    still = counters(500, 20, 100, RUNNING, 0, 5, 5)
    assert usage_of(still, still._replace(dispatches=101)) == Usage(0, 0, 1, RUNNING, 0)


def test_who_has_come_has_no_usage_and_who_is_gone_is_nowhere() -> None:
    busy = counters(10, 0, 1)
    before, after = snapshot(0, {A: busy, B: busy}), snapshot(80, {B: busy, C: busy})
    made = between(1, before, after)
    assert set(made.usage) == {B}
    assert set(made.knobs) == set(made.core_of) == {B, C}


def test_a_recycled_thread_id_is_somebody_else() -> None:
    reborn = A._replace(start_ticks=A.start_ticks + 1)
    made = between(1, snapshot(0, {A: counters(900, 0, 9)}), snapshot(80, {reborn: counters(950, 0, 10)}))
    assert made.usage == {}


@pytest.mark.parametrize(
    ("ready_ms", "dispatches", "latency_us", "conflicts"),
    [
        # min(dispatches, ready / latency)
        (13.0, 9, 4000, 3),  # 13 / 4 = 3.25
        (13.0, 2, 4000, 2),  # only two waits ended
        (12.0, 9, 4000, 3),  # exactly three latencies
        (11.9, 9, 4000, 2),
        (3.9, 9, 4000, 0),
        (13.0, 9, None, 0),  # nothing to measure by
    ],
)
def test_conflicts_are_estimated_where_the_host_does_not_count_them(
    ready_ms: float, dispatches: int, latency_us: float | None, conflicts: int
) -> None:
    used = usage_of(counters(0, 0, 0), counters(5, ready_ms, dispatches), latency_us)
    assert used is not None
    assert used.conflicts == conflicts


def test_the_estimate_uses_the_latency_that_was_set_when_the_period_began() -> None:
    before = snapshot(0, {A: counters(0, 0, 0)}, latency_us=4000)
    after = snapshot(80, {A: counters(5, 12, 9)}, latency_us=12000)
    assert between(1, before, after).usage[A].conflicts == 3


def test_conflicts_are_preemptions_and_late_wakeups_where_the_host_counts_them() -> None:
    #          preemptions   late wake-ups
    # before             4              10
    # after              6              13     2 + 3 = 5; the 40 ms ready do not matter
    used = usage_of(
        counters(0, 0, 0, preemptions=4, late_wakeups=10), counters(5, 40, 99, preemptions=6, late_wakeups=13)
    )
    assert used is not None
    assert used.conflicts == 5


def test_conflicts_are_estimated_if_only_one_of_the_two_is_counted() -> None:
    used = usage_of(counters(0, 0, 0, preemptions=4), counters(5, 12, 9, preemptions=6))
    assert used is not None
    assert used.conflicts == 3


def test_wakers_are_counted_anew_each_period_and_only_siblings_count() -> None:
    # of A:     B   C   OTHER   A itself
    # before    7   -       1          1
    # after    10   4       9          9     B: 3, C: 4; OTHER is no sibling, A cannot wake itself
    before = counters(0, 0, 0, ASLEEP, wakers=((B, 7), (OTHER, 1), (A, 1)))
    after = counters(5, 0, 9, ASLEEP, wakers=((C, 4), (OTHER, 9), (B, 10), (A, 9)))
    idle = counters(0, 0, 0, ASLEEP)
    rest = dict.fromkeys([B, C, OTHER], idle)
    groups = [[A, B, C], [OTHER]]
    made = between(
        1,
        snapshot(0, {A: before, **rest}, workloads=groups),
        snapshot(80, {A: after, **rest}, workloads=groups),
    )
    assert made.usage[A].wakers == ((B, 3), (C, 4))


def test_a_waker_that_did_not_wake_or_is_no_longer_listed_is_left_out() -> None:
    before = counters(0, 0, 0, wakers=((B, 7), (C, 2)))
    idle = counters(0, 0, 0, ASLEEP)
    after = counters(5, 0, 9, wakers=((B, 7),))
    made = between(1, snapshot(0, {A: before, B: idle, C: idle}), snapshot(80, {A: after, B: idle, C: idle}))
    assert made.usage[A].wakers == ()


def test_the_seat_is_the_pin_or_else_the_last_core() -> None:
    made = period(Group("a", [Row(core=0, pin=1), Row(core=0), Row(core=1, movable=False)]))
    assert [seat(made, vcpu) for vcpu in (A, B, C)] == [1, 0, 1]


def test_a_column_is_in_the_order_asked_for_whatever_the_order_of_the_table() -> None:
    assert column({A: 1, B: 2}, [A, B]) == [1, 2]
    assert column({B: 2, A: 1}, [A, B]) == [1, 2]
    assert column({A: 1}, [A, B]) == [1, None]


def test_wakeups_made_and_had_and_time_in_chains_are_differences_where_the_host_counts_them() -> None:
    then = counters(0, 0, 0)._replace(wakeups=10, external_wakeups=4, chain_ns=1000, outward=20)
    now = counters(5, 1, 9)._replace(wakeups=17, external_wakeups=6, chain_ns=4000, outward=25)
    used = usage_of(then, now)
    assert used is not None
    assert used[6:] == (7, 2, 3000, 5)
    edges_only = usage_of(then._replace(chain_ns=None), now._replace(chain_ns=None))
    assert edges_only is not None
    assert edges_only[6:] == (7, 2, None, 5)


def test_a_count_that_went_back_makes_a_vcpu_new() -> None:
    then = counters(0, 0, 0)._replace(wakeups=10, external_wakeups=10, chain_ns=10, outward=10)
    now = then._replace(on_cpu_ns=5, wakeups=11, external_wakeups=11, chain_ns=11, outward=11)
    assert usage_of(then, now) is not None
    backwards = now._replace(wakeups=9), now._replace(external_wakeups=9), now._replace(chain_ns=9)
    for wrong in (*backwards, now._replace(outward=9)):
        assert usage_of(then, wrong) is None


def test_one_that_slept_through_is_shared_on_a_host_that_counts_wakeups_too() -> None:
    total = counters(5, 1, 9, ASLEEP)._replace(wakeups=10, external_wakeups=4, chain_ns=1000)
    assert usage_of(total, total._replace()) is IDLE


def test_time_for_which_a_cap_stops_a_thread_is_no_waiting_and_no_conflict() -> None:
    def at(clock_ms: float, ready_ms: float, throttled_ms: int) -> Snapshot:
        own = {A: OwnLimit(300_000, throttled_ms * MS)}
        seen = snapshot(clock_ms, {A: counters(500, ready_ms, 100 + int(ready_ms))})
        return replace(seen, limits={"w0": Limits(2_000_000, 0, throttled_ms * MS, own)})

    made = between(1, at(1000, 20, 5), at(1080, 60, 35))
    assert (made.usage[A].ready_ns, made.usage[A].conflicts) == (10 * MS, 2)
    assert made.limits["w0"] == Limits(2_000_000, 0, 30 * MS, {A: OwnLimit(300_000, 30 * MS)})


def test_quotas_of_all_vcpus_limit_a_workload_by_their_sum_where_that_is_less() -> None:
    own = {A: OwnLimit(0, 0, 400_000), B: OwnLimit(0, 0, 1_500_000)}
    assert Limits(0, 0, 0, own).tightest_ppm == 1_400_000  # a vCPU uses a core at most
    assert Limits(1_000_000, 0, 0, own).tightest_ppm == 1_000_000
    assert Limits(2_000_000, 0, 0, {A: own[A], B: OwnLimit(0, 0)}).tightest_ppm == 2_000_000
