"""Equal quotas of vCPUs: those that nobody waits for lend, the sum stays, and nothing is lent for long."""

from __future__ import annotations

import random

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from dasec.bandwidth.loans import KEPT_PERCENT
from dasec.bandwidth.rates import LEAST_PPM
from dasec.model import VcpuId

from .cfs import LOOK_US, busy, hog
from .divided import DividedWorld, Limited

S = 1_000_000
CRITICAL = VcpuId(1, 0, 7)


def vcpu(number: int) -> VcpuId:
    return VcpuId(1, number, 7)


def world(critical_percent: int, given: int = 500_000, hogs: int = 3) -> DividedWorld:
    threads = [Limited(CRITICAL, busy(critical_percent), given)]
    threads += [Limited(vcpu(number), hog, given) for number in range(1, hogs + 1)]
    return DividedWorld(threads, frozenset((CRITICAL,)))


def in_force(one: DividedWorld) -> list[int]:
    return [thread.in_force_ppm for thread in one.threads]


def test_who_is_waited_for_and_stopped_by_its_own_quota_gets_what_the_others_lend() -> None:
    plain, lent = world(60), world(60)
    plain.lends = False
    plain.run(12 * S)
    lent.run(2 * S)
    stopped = lent.threads[0].throttled_us
    lent.run(10 * S)
    assert plain.threads[0].throttled_us > 5 * S
    assert lent.threads[0].throttled_us - stopped < 0.05 * S
    assert lent.threads[0].backlog_us < 10_000 < plain.threads[0].backlog_us


def test_what_is_lent_is_lent_in_equal_parts_and_the_sum_is_what_was_given() -> None:
    lent = world(60)
    lent.run(10 * S)
    borrower, *lenders = in_force(lent)
    assert borrower > 800_000
    assert len(set(lenders)) == 1
    assert lent.given_ppm() - len(lenders) <= borrower + sum(lenders) <= lent.given_ppm()


def test_lenders_fall_a_look_before_the_borrower_rises() -> None:
    lent = world(60)
    lent.run(3 * S)
    moments = [at for at, _, _ in lent.writes[:4]]
    assert [one for _, one, _ in lent.writes[:4]] == [vcpu(1), vcpu(2), vcpu(3), CRITICAL]
    assert moments[:3] == [moments[0]] * 3
    assert moments[3] == moments[0] + LOOK_US


@pytest.mark.parametrize("percent", [5, 30])
def test_where_no_quota_stops_whom_others_wait_for_nothing_is_written(percent: int) -> None:
    free = world(percent)
    free.run(5 * S)
    assert (free.writes, free.loans) == ([], None)


def test_nothing_is_lent_where_nobody_or_everybody_is_waited_for() -> None:
    nobody, everybody = world(60), world(60)
    nobody.waited_for, everybody.waited_for = frozenset(), frozenset(thread.id for thread in nobody.threads)
    nobody.run(3 * S)
    everybody.run(3 * S)
    assert (nobody.writes, everybody.writes) == ([], [])


def test_all_is_back_two_looks_after_nobody_is_waited_for() -> None:
    lent = world(60)
    lent.run(3 * S)
    assert all(in_force(lent))
    lent.waited_for = frozenset()
    lent.run(2 * LOOK_US)
    assert in_force(lent) == [0, 0, 0, 0]


def test_all_is_back_once_the_borrower_needs_no_more_than_it_was_given() -> None:
    lent = world(60)
    lent.run(3 * S)
    lent.threads[0].arrives = busy(10)
    lent.run(2 * S)
    assert in_force(lent) == [0, 0, 0, 0]
    lent.run(20 * S)
    assert lent.loans is None


def test_a_quota_that_the_operator_changes_is_followed_at_the_next_look() -> None:
    lent = world(60)
    lent.run(3 * S)
    for thread in lent.threads:
        thread.given_ppm = 400_000
        thread.write(0)
    lent.run(3 * S)
    assert lent.given_ppm() == 1_600_000
    assert lent.in_force_ppm() <= 1_600_000
    assert in_force(lent)[0] > 700_000


def test_too_small_quotas_lend_nothing_because_the_writes_would_cost_more() -> None:
    small = world(20, given=100_000)
    small.run(10 * S)
    assert small.writes == []


@pytest.mark.parametrize("percent", [45, 60, 80])
def test_loans_that_come_and_go_hand_out_less_than_a_hundredth_in_any_ten_seconds(percent: int) -> None:
    chance = random.Random(percent)
    lent = world(percent)
    used = [0]
    for _ in range(300):
        if chance.random() < 0.1:
            lent.waited_for = frozenset() if lent.waited_for else frozenset((CRITICAL,))
            lent.threads[0].arrives = chance.choice([hog, busy(percent), busy(5)])
        lent.run(100_000)
        used.append(lent.used_us())
    most = max(used[at + 100] - used[at] for at in range(len(used) - 100))
    assert len(lent.writes) > 8
    assert most <= lent.given_ppm() * 10 * 1.01


@settings(max_examples=25, deadline=None, phases=(Phase.generate,))
@given(
    quotas=st.lists(st.integers(100_000, 1_500_000), min_size=2, max_size=6),
    seed=st.integers(0, 1000),
    refused=st.sampled_from([0.0, 0.3]),
)
def test_whatever_happens_the_sum_holds_and_no_lender_is_below_its_floor(
    quotas: list[int], seed: int, refused: float
) -> None:
    chance = random.Random(seed)
    threads = [Limited(vcpu(number), hog, quota) for number, quota in enumerate(quotas)]
    lent = DividedWorld(threads, frozenset(), fails=lambda: chance.random() < refused)
    for _ in range(25):
        lent.waited_for = frozenset(one.id for one in threads if chance.random() < 0.5)
        for thread in threads:
            thread.arrives = chance.choice([hog, busy(20), busy(70)])
        if chance.random() < 0.1:  # the operator
            chosen = chance.choice(threads)
            chosen.given_ppm = chance.choice(quotas)
            chosen.write(0)
        lent.run(chance.randrange(1, 10) * LOOK_US)
        for thread in threads:
            least = min(thread.given_ppm, S) * KEPT_PERCENT // 100
            assert thread.quota_ppm >= min(thread.given_ppm, max(LEAST_PPM, least) - 1)
