"""The workloads, and what each is told: nothing of it depends on the arm."""

from __future__ import annotations

import inspect
from collections import Counter
from itertools import permutations
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dasec.lab.demo import situations
from dasec.lab.demo.situations import situations_for
from dasec.lab.kit.arms import CONTROL, NONE, arms_for, schedule
from dasec.lab.kit.load_driver import service_options
from dasec.lab.kit.scenario import Tenant, Timing, fan_out, seed_of


@pytest.mark.parametrize("cores", [1, 2, 3, 8, 65])
@pytest.mark.parametrize(("number", "utilisation"), [(0, 0.82), (1, 0.45), (2, 0.82)])
def test_every_machine_is_loaded_alike(cores: int, number: int, utilisation: float) -> None:
    planned = situations_for(cores)[number].scenario
    assert sum(map(cores_of, planned.tenants)) / cores == pytest.approx(utilisation, rel=0.01)
    assert planned.consolidation_ratio == pytest.approx(7.5, abs=1.6)


def cores_of(tenant: Tenant) -> float:
    """What it computes."""
    told = dict(tenant.options)
    bursts = int(told["background"]) * float(told["background-rate"]) * int(told["background-burst-us"])
    request_us = int(told["serial-us"]) + int(told["helpers"]) * int(told.get("helper-us", 0))
    return (tenant.rate_per_s * request_us + bursts) / 1e6


def test_where_all_threads_serve_there_is_no_background() -> None:
    first, _, last = situations_for(2)
    assert all(set(one.critical) == {"main"} for one in first.scenario.tenants)
    assert all(dict(one.options)["background"] == "0" for one in last.scenario.tenants)


def test_names_are_unique() -> None:
    for situation in situations_for(8):
        names = [tenant.name for tenant in situation.scenario.tenants]
        assert len(set(names)) == len(names)


@given(st.integers(0, 2**31 - 1), st.integers(0, 999), st.integers(0, 999))
def test_no_two_workloads_or_repetitions_share_their_arrivals(seed: int, repetition: int, index: int) -> None:
    mine = seed_of(seed, repetition, index)
    assert mine not in (seed_of(seed, repetition + 1, index), seed_of(seed, repetition, index + 1))
    assert 0 <= mine < 2**64


def test_what_a_workload_is_told_cannot_depend_on_the_arm() -> None:
    for function in (Tenant.order, service_options, seed_of, situations_for):
        assert "arm" not in inspect.signature(function).parameters


def test_a_service_is_told_everything_that_the_scenario_says() -> None:
    order = fan_out("service-0", 200).order(42, Timing(seconds=5.0), Path("/files"), 123.25)
    told = service_options(order, order.options)
    assert (order.seed, order.seconds, order.warmup_s, order.folder) == (
        42,
        5.0,
        2.0,
        Path("/files/service-0"),
    )
    assert (told["rate"], told["helpers"], told["background"]) == ("200", "2", "1")
    assert told["iterations-per-us"] == "123.25"


def test_who_is_fed_is_told_so() -> None:
    first, _, last = situations_for(2)
    assert all("feeder" in dict(one.options) for one in first.scenario.tenants)
    assert not any("feeder" in dict(one.options) for one in last.scenario.tenants)


def test_a_run_is_settled_before_it_is_measured() -> None:
    tsa_from_neutral_to_its_bound_s = 22 * 0.08  # 1.1 ** 22 = 8, at 80 ms a period
    assert Timing(seconds=1.0).warmup_s >= tsa_from_neutral_to_its_bound_s


def test_the_default_and_its_control_are_always_there_and_no_policy_twice() -> None:
    assert arms_for(["dasec", "none", "static", "dasec"]) == (NONE, CONTROL, "dasec", "static")
    assert arms_for([]) == (NONE, CONTROL)
    assert arms_for([CONTROL, "dasec"]) == (NONE, CONTROL, "dasec")


@given(st.integers(0, 2**31 - 1), st.integers(1, 10))
def test_each_repetition_has_every_arm_once_in_an_order_that_the_seed_gives(
    seed: int, repetitions: int
) -> None:
    arms = arms_for(["dasec", "static"])
    orders = schedule(arms, repetitions, seed)
    assert orders == schedule(arms, repetitions, seed)
    assert len(orders) == repetitions
    assert all(sorted(order) == sorted(arms) for order in orders)


@given(st.integers(0, 2**31 - 1), st.integers(2, 6), st.integers(1, 3))
def test_every_arm_is_equally_often_in_each_place(seed: int, count: int, times: int) -> None:
    arms = [f"arm-{number}" for number in range(count)]
    orders = schedule(arms, times * count, seed)
    for place in zip(*orders, strict=True):
        assert Counter(place) == dict.fromkeys(arms, times)


@given(st.integers(0, 2**31 - 1))
def test_with_three_arms_six_repetitions_have_all_orders_once(seed: int) -> None:
    arms = arms_for(["dasec"])
    assert sorted(schedule(arms, 6, seed)) == sorted(permutations(arms))


def test_in_each_situation_of_a_demo_with_one_policy_every_arm_is_equally_often_the_first() -> None:
    arms = arms_for(["critical"])
    for number, situation in enumerate(situations_for(2)):
        first = Counter(order[0] for order in schedule(arms, situation.repetitions, 1 + number))
        assert first == dict.fromkeys(arms, situation.repetitions / len(arms))


def test_the_module_says_where_its_numbers_come_from() -> None:
    assert "docs/measurements.md" in (situations.__doc__ or "")
