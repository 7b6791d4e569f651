"""The workloads, and what each is told: nothing of it depends on the arm."""

from __future__ import annotations

import inspect

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dasec.lab.demo import scenario
from dasec.lab.demo.arms import CONTROL, NONE, arms_for, schedule
from dasec.lab.demo.scenario import FanOut, Memcached, Timing, load_arguments, scenario_for, seed_of


@pytest.mark.parametrize("cores", [1, 2, 3, 8, 65])
def test_every_machine_is_loaded_alike_at_five_vcpus_a_core(cores: int) -> None:
    planned = scenario_for(cores)
    requests = sum(one.rate_per_s for one in planned.tenants if isinstance(one, Memcached))
    assert planned.consolidation_ratio == 5.0
    assert requests == 2_500 * cores
    assert sum(isinstance(one, FanOut) for one in planned.tenants) == cores


def test_the_services_alone_load_a_core_to_about_half() -> None:
    service = scenario_for(1).tenants[-1]
    assert isinstance(service, FanOut)
    request_us = service.serial_us + service.helpers * service.helper_us
    background = service.background * service.bursts_per_s * service.burst_us / 1e6
    assert service.rate_per_s * request_us / 1e6 + background == pytest.approx(0.5, abs=0.05)


def test_names_are_unique() -> None:
    names = [tenant.name for tenant in scenario_for(8).tenants]
    assert len(set(names)) == len(names)


@given(st.integers(0, 2**31 - 1), st.integers(0, 999), st.integers(0, 999))
def test_no_two_workloads_or_repetitions_share_their_arrivals(seed: int, repetition: int, index: int) -> None:
    mine = seed_of(seed, repetition, index)
    assert mine not in (seed_of(seed, repetition + 1, index), seed_of(seed, repetition, index + 1))
    assert 0 <= mine < 2**64


def test_the_arguments_of_a_workload_cannot_depend_on_the_arm() -> None:
    for function in (load_arguments, seed_of, scenario_for):
        assert "arm" not in inspect.signature(function).parameters
    timing = Timing(seconds=5.0)
    for index, tenant in enumerate(scenario_for(2).tenants):
        told = {load_arguments(tenant, timing, seed_of(7, 3, index), 123.25) for _arm in range(4)}
        assert len(told) == 1


def test_a_service_is_told_everything_that_the_scenario_says() -> None:
    arguments = load_arguments(FanOut("service-0"), Timing(seconds=5.0), 42, 123.25)
    told = dict(zip(arguments[1::2], arguments[2::2], strict=True))
    assert arguments[0] == "service"
    assert (told["--seed"], told["--seconds"], told["--warmup"]) == ("42", "5", "2")
    assert (told["--rate"], told["--helpers"], told["--background"]) == ("200", "2", "1")
    assert told["--iterations-per-us"] == "123.25"


def test_a_run_is_settled_before_it_is_measured() -> None:
    tsa_from_neutral_to_its_bound_s = 22 * 0.08  # 1.1 ** 22 = 8, at 80 ms a period
    assert Timing(seconds=1.0).warmup_s >= tsa_from_neutral_to_its_bound_s


def test_the_default_and_its_control_are_always_there_and_no_policy_twice() -> None:
    assert arms_for(["dasec", "none", "static", "dasec"]) == (NONE, CONTROL, "dasec", "static")
    assert arms_for([]) == (NONE, CONTROL)


@given(st.integers(0, 2**31 - 1), st.integers(1, 10))
def test_each_repetition_has_every_arm_once_in_an_order_that_the_seed_gives(
    seed: int, repetitions: int
) -> None:
    arms = arms_for(["dasec", "static"])
    orders = schedule(arms, repetitions, seed)
    assert orders == schedule(arms, repetitions, seed)
    assert len(orders) == repetitions
    assert all(sorted(order) == sorted(arms) for order in orders)


def test_no_arm_always_comes_first() -> None:
    first = {order[0] for order in schedule(arms_for(["dasec", "static"]), 40, seed=1)}
    assert len(first) == 4


def test_the_module_says_where_its_numbers_come_from() -> None:
    assert "docs/measurements.md" in (scenario.__doc__ or "")
