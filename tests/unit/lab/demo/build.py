"""Results as a demo would have them, from planted numbers."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence

from dasec.lab.kit.results import Measured, RunResult, TenantResult
from dasec.lab.load_tool import latencies

Factor = Callable[[int], float]
"""How much longer a request takes than on the plain host, by repetition."""

TENANTS = ("memcached-0", "service-0", "service-1")


def tenant(name: str, samples: Sequence[int], cores: float = 0.2) -> TenantResult:
    """One workload's result from its latencies in nanoseconds."""
    return TenantResult(name, latencies(samples), len(samples) / 5.0, 0, 0, 0, cores, 0.0)


def measured(
    factors: Mapping[str, Factor], repetitions: int = 5, requests: int = 200, seed: int = 1
) -> Measured:
    """Every arm serves the same requests, `factor` times as slowly."""
    runs = []
    for repetition in range(repetitions):
        chance = random.Random(seed * 1000 + repetition)
        base = {name: [chance.expovariate(1 / 2e6) + 1e5 for _ in range(requests)] for name in TENANTS}
        for arm, factor in factors.items():
            tenants = tuple(
                tenant(name, [int(value * factor(repetition)) for value in values])
                for name, values in base.items()
            )
            daemon_cpu_s = 0.0 if arm.startswith("none") else 0.05
            runs.append(RunResult(arm, repetition, tenants, 0.5, daemon_cpu_s, 0.7, 0.02, 0.0, 5.0, {}))
    return Measured(tuple(factors), TENANTS, repetitions, tuple(runs))
