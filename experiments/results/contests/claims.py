"""What each workload is entitled to by its neutral weights: water-filling over threads. Pure.

A thread gets no more than it can use, and no more than one core; what it leaves goes to all others in
proportion to their weights. In layout `flat` each thread competes with each, in `vm` the workloads compete
as equals, and their threads inside them (kit/layout.py). A kernel on many cores comes near this, as far as
its balancing goes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from dasec.lab.kit.layout import GroupLayout
from dasec.lab.kit.scenario import Scenario, Tenant

ENDLESS_PER_S = 10_000
"""Bursts so often have no end."""

MAIN_US, HELPER_US = 500.0, 600.0
"""Of a request, where the load tool is told nothing else (experiments/load/src/service_options.c)."""


def entitled(scenario: Scenario, layout: GroupLayout) -> Mapping[str, float] | None:
    """In cores, by workload; None if what they want changes with time."""
    claims = {}
    for tenant in scenario.tenants:
        if dict(tenant.options).get("alternate-s", "0") != "0":
            return None
        claims[tenant.name] = tuple(claims_of(tenant))
    if layout is not GroupLayout.FLAT:
        return dict(zip(claims, divide(list(map(sum, claims.values())), scenario.cores), strict=True))
    each = iter(divide([want for wants in claims.values() for want in wants], scenario.cores))
    return {name: sum(next(each) for _ in wants) for name, wants in claims.items()}


def claims_of(service: Tenant) -> Iterator[float]:
    """How much of a core each of its threads would use alone; two actors share one turn, and one claim."""
    told = dict(service.options)
    helpers, background = int(told["helpers"]), int(told["background"])
    if told["variant"] == "pretend":
        yield from [1.0] * (helpers // 2)
    elif service.critical:
        yield service.rate_per_s * MAIN_US / 1e6
        yield from [service.rate_per_s * HELPER_US / 1e6] * helpers
    per_s = float(told["background-rate"])
    burst_cores = per_s * float(told["background-burst-us"]) / 1e6
    yield from [1.0 if per_s > ENDLESS_PER_S else burst_cores] * background
    if told.get("background-wakes") == "peer":
        yield from [per_s * float(told["peer-us"]) / 1e6] * background


def divide(wants: Sequence[float], cores: float) -> list[float]:
    """So many cores among equals who want that much each."""
    left, found = cores, list(wants)
    order = sorted(range(len(wants)), key=lambda index: wants[index])
    for position, index in enumerate(order):
        found[index] = min(wants[index], left / (len(wants) - position))
        left -= found[index]
    return found
