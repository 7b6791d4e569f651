"""The workloads, and what each is told: nothing of it depends on the arm."""

from __future__ import annotations

import inspect

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dasec.lab.demo import situations
from dasec.lab.demo.situations import situations_for
from dasec.lab.kit.arms import CONTROL, NONE, arms_for, schedule
from dasec.lab.kit.scenario import FanOut, Service, Tenant, Timing, load_arguments, seed_of


@pytest.mark.parametrize("cores", [1, 2, 3, 8, 65])
@pytest.mark.parametrize(("number", "utilisation"), [(0, 0.88), (1, 0.45), (2, 0.88)])
def test_every_machine_is_loaded_alike(cores: int, number: int, utilisation: float) -> None:
    planned = situations_for(cores)[number].scenario
    assert sum(map(cores_of, planned.tenants)) / cores == pytest.approx(utilisation, rel=0.01)
    assert planned.consolidation_ratio == pytest.approx(7.5, abs=1.6)


def cores_of(tenant: Tenant) -> float:
    """What it computes."""
    if isinstance(tenant, FanOut):
        return tenant.rate_per_s * (tenant.serial_us + tenant.helpers * tenant.helper_us) / 1e6
    assert isinstance(tenant, Service)
    told = dict(tenant.options)
    bursts = int(told["background"]) * float(told["background-rate"]) * int(told["background-burst-us"])
    return (tenant.rate_per_s * int(told["serial-us"]) + bursts) / 1e6


def test_where_all_threads_serve_there_is_no_background() -> None:
    first, _, last = situations_for(2)
    assert all(set(one.critical) == {"main"} for one in first.scenario.tenants)
    assert all(isinstance(one, FanOut) and one.background == 0 for one in last.scenario.tenants)


def test_names_are_unique() -> None:
    for situation in situations_for(8):
        names = [tenant.name for tenant in situation.scenario.tenants]
        assert len(set(names)) == len(names)


@given(st.integers(0, 2**31 - 1), st.integers(0, 999), st.integers(0, 999))
def test_no_two_workloads_or_repetitions_share_their_arrivals(seed: int, repetition: int, index: int) -> None:
    mine = seed_of(seed, repetition, index)
    assert mine not in (seed_of(seed, repetition + 1, index), seed_of(seed, repetition, index + 1))
    assert 0 <= mine < 2**64


def test_the_arguments_of_a_workload_cannot_depend_on_the_arm() -> None:
    for function in (load_arguments, seed_of, situations_for):
        assert "arm" not in inspect.signature(function).parameters
    timing = Timing(seconds=5.0)
    for index, tenant in enumerate(situations_for(2)[0].scenario.tenants):
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
    assert "docs/measurements.md" in (situations.__doc__ or "")
