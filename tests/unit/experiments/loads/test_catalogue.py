"""The loads: at every point as many threads and as much work as asked, or a reason why not."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import pytest

from dasec.lab.kit.load_driver import NO_REQUESTS_PER_S, service_options
from dasec.lab.kit.scenario import Scenario, Tenant, Timing
from experiments.drivers.memcached import Memcached
from experiments.plan.loads import IDLE, LOADS, NEAREST, REQUEST_US, Impossible, Wanted

TIMING = Timing(3.0)
POINTS = tuple(itertools.product((2, 8), (1, 2, 4, 8), (0.3, 0.8, 1.05)))


def built(name: str, cores: int = 2, ratio: float = 8, utilisation: float = 0.8) -> Scenario:
    return LOADS[name].build(Wanted(cores, ratio, utilisation, TIMING))


def told_to(tenant: Tenant) -> dict[str, str]:
    """The load tool's options."""
    order = tenant.order(1, TIMING, Path("/nowhere"), 900.0)
    return service_options(order, order.options)


def work(tenant: Tenant) -> float:
    """What a workload computes, in cores, by its options."""
    told = dict(tenant.options)
    if isinstance(tenant.driver, Memcached):
        return (
            tenant.rate_per_s * REQUEST_US / 1e6
            + int(told["background"]) * float(told["bursts-per-s"]) * 10e-3
        )

    def number(key: str, otherwise: float = 0.0) -> float:
        return float(told.get(key, otherwise))

    rate = number("step-rate", tenant.rate_per_s)
    threads = number("helpers") if told["variant"] == "fanout" else 1
    if told["variant"] == "pipeline":
        threads = number("stages")
    slow = number("imbalance", 1) - 1
    request_us = number("serial-us", 500) + (threads + slow) * number("helper-us", 600)
    request_us += 20 if told["variant"] == "convoy" else 0
    burst_us = number("background-burst-us")
    woken_us = {"logger": burst_us / 1000, "peer": 1}.get(told.get("background-wakes", ""), 0)
    burst_us += woken_us * number(f"{told.get('background-wakes')}-us")
    bursts = number("background") * number("background-rate") * burst_us
    return (rate * request_us + bursts + number("hold-rate") * number("hold-us")) / 1e6


@pytest.mark.parametrize("name", LOADS)
def test_every_load_has_the_threads_and_the_work_that_were_asked_or_says_why_not(name: str) -> None:
    missing = []
    for cores, ratio, utilisation in POINTS:
        try:
            scenario = built(name, cores, ratio, utilisation)
        except Impossible as why:
            missing.append(str(why))
            continue
        assert abs(scenario.vcpus - ratio * cores) <= NEAREST * ratio * cores
        asked = IDLE if name == "idle" else utilisation
        assert sum(map(work, scenario.tenants)) == pytest.approx(asked * cores, rel=0.01)
    assert len(missing) <= len(POINTS) // 2
    assert all(re.match(r"has at least \d+ vCPUs|one thread alone", why) for why in missing)


@pytest.mark.parametrize("name", LOADS)
def test_every_load_says_who_is_critical_and_names_its_workloads_apart(name: str) -> None:
    scenario = built(name)
    assert any(tenant.critical for tenant in scenario.tenants)
    assert len({tenant.name for tenant in scenario.tenants}) == len(scenario.tenants)


def test_the_prototypes_scenario_comes_out_as_it_was() -> None:
    # E10: four workloads of five threads at 100 requests/s and 2 × 12 bursts/s make 1.64 cores
    scenario = built("background", ratio=10, utilisation=0.82)
    assert [tenant.vcpus for tenant in scenario.tenants] == [5] * 4
    tenant = scenario.tenants[0]
    told = dict(tenant.options)
    assert tenant.rate_per_s == pytest.approx(100, rel=0.01)
    assert (told["helpers"], told["background"], told["background-burst-us"]) == ("2", "2", "10000")
    assert float(told["background-rate"]) == pytest.approx(12, rel=0.01)


def test_a_step_comes_in_the_middle_of_the_measured_part() -> None:
    tenant = built("step").tenants[0]
    told = told_to(tenant)
    assert told["step-at"] == told["background-from"] == "3.5"
    assert float(told["rate"]) == pytest.approx(float(told["step-rate"]) * 2 / 3, rel=0.001)


def test_an_external_server_is_fed_and_batch_work_is_asked_nothing() -> None:
    served, *batches = built("latency-vm").tenants
    assert "feeder" in told_to(built("external").tenants[0])
    assert served.critical
    assert all(not tenant.critical and tenant.rate_per_s == NO_REQUESTS_PER_S for tenant in batches)


def test_every_load_is_described_in_the_readme(repository: Path) -> None:
    readme = (repository / "experiments/studies/loads/README.md").read_text(encoding="utf-8")
    assert [name for name in LOADS if f"| `{name}` |" not in readme] == []
