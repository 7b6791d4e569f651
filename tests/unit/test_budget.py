"""The daemon stays within its part of a core, by looking later; never so late that a rule would not live."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dasec.budget import LONGEST_NS, SAVED_NS, UNBOUNDED, Account, Budget, default_percent
from dasec.model import Decision

PERIOD_NS = 80_000_000
LONGEST = LONGEST_NS // PERIOD_NS
MS = 1_000_000
ONE_PERCENT = Budget(1.0, PERIOD_NS)
WAITS = Decision(can_wait=True)


def live(
    costs_ns: Iterable[int], budget: Budget = ONE_PERCENT, decision: Decision = WAITS, saved_ns: int = 0
) -> list[int]:
    """The rests after looks that cost so much."""
    account, clock_ns, cpu_ns, rest = Account(saved_ns, 0, 0), 0, 0, 1
    rests = []
    for cost_ns in costs_ns:
        clock_ns += rest * budget.period_ns
        cpu_ns += cost_ns
        account, (spent_ns, rest) = budget.pay(account, clock_ns, cpu_ns, decision)
        assert spent_ns == cost_ns
        rests.append(rest)
    return rests


def test_a_look_that_costs_six_periods_of_the_budget_is_made_every_six() -> None:
    # 1 % of 80 ms is 0.8 ms; the first look was paid by one period
    assert live([4_800_000] * 5) == [5, 6, 6, 6, 6]


def test_a_look_that_costs_less_than_a_period_earns_is_made_every_period() -> None:
    assert live([790_000] * 50) == [1] * 50


def test_a_look_between_is_made_now_after_one_period_and_now_after_two() -> None:
    rests = live([1_200_000] * 100)
    assert set(rests) == {1, 2}
    assert sum(rests) == pytest.approx(150, abs=2)


def test_after_a_calm_time_the_first_looks_do_not_wait() -> None:
    saved_ns = SAVED_NS // 100
    rests = live([5 * MS] * 30, saved_ns=saved_ns)
    assert rests[:23] == [1] * 23
    assert rests[-1] > 5


def test_while_a_policy_rests_a_third_of_the_earnings_is_saved_for_the_next_change() -> None:
    # looks of 1.6 ms: 3 periods apart they cost two thirds of 0.8 ms a period
    calm = [1_600_000] * 40
    rests = live(calm, decision=Decision(rest=2, can_wait=True))
    assert rests[1:] == [3] * 39
    saved_ns = (1 + sum(rests[:-1])) * 800_000 - sum(calm)
    assert saved_ns > 20 * MS
    assert live([2 * MS] * 12, saved_ns=saved_ns) == [1] * 12


def test_who_has_saved_all_that_can_be_saved_looks_as_often_as_its_budget_allows() -> None:
    calm = Decision(rest=2, can_wait=True)
    assert live([1_600_000] * 4, decision=calm, saved_ns=SAVED_NS // 100) == [3, 2, 2, 2]


def test_a_decision_that_cannot_wait_does_not() -> None:
    assert live([50 * MS] * 5, decision=Decision(rest=2)) == [2] * 5


def test_a_policy_that_rests_longer_than_its_budget_asks_does_so() -> None:
    assert live([MS] * 5, decision=Decision(rest=4, can_wait=True)) == [4] * 5


def test_no_look_is_later_than_the_longest_rest_and_what_was_dear_once_is_forgiven() -> None:
    assert live([2000 * MS, *[1_600_000] * 5]) == [LONGEST, 2, 2, 2, 2, 2]


def test_a_long_period_is_never_put_off() -> None:
    assert set(live([500 * MS] * 5, Budget(1.0, LONGEST_NS))) == {1}


def test_without_a_bound_nothing_waits() -> None:
    _, outlay = UNBOUNDED.pay(Account(0, 0, 0), 1, 10**12, WAITS)
    assert outlay.rest == 1


@given(
    st.lists(st.integers(0, 15 * MS), min_size=1, max_size=200),
    st.floats(1.0, 100),
    st.sampled_from([1, 2]),
)
def test_what_is_used_is_never_more_than_what_was_earned_and_saved(
    costs_ns: list[int], percent: float, rest: int
) -> None:
    rests = live(costs_ns, Budget(percent, PERIOD_NS), Decision(rest=rest, can_wait=True))
    passed_ns = (1 + sum(rests)) * PERIOD_NS
    # each sum is rounded down once a look
    assert sum(costs_ns) <= passed_ns * percent / 100 + len(costs_ns)
    assert max(rests) <= max(LONGEST, rest)


@given(st.integers(0, 10**10), st.integers(0, 10**12), st.integers(0, 10**10), st.floats(0.1, 100))
def test_an_account_stays_within_what_can_be_saved_and_what_is_forgiven(
    balance_ns: int, passed_ns: int, cpu_ns: int, percent: float
) -> None:
    budget = Budget(percent, PERIOD_NS)
    account, _ = budget.pay(Account(balance_ns, 0, 0), passed_ns, cpu_ns, WAITS)
    assert -LONGEST_NS * percent / 100 <= account.balance_ns <= SAVED_NS * percent / 100


@pytest.mark.parametrize(
    ("cores", "percent"), [(1, 1.0), (2, 1.0), (10, 1.0), (16, 1.6), (33, 3.3), (80, 8.0)]
)
def test_by_default_it_grows_with_the_cores_that_are_managed(cores: int, percent: float) -> None:
    assert default_percent(cores) == percent


def test_on_many_cores_256_vcpus_are_looked_at_every_period() -> None:
    look_ns = 4_200_000  # docs/overhead.md, 256 vCPUs without a budget
    assert set(live([look_ns] * 20, Budget(default_percent(80), PERIOD_NS))) == {1}
    assert set(live([look_ns] * 20, Budget(default_percent(2), PERIOD_NS))) >= {5, 6}
