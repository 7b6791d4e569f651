"""Consolidated workloads as data, and what each is told to do in one repetition."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

MEMCACHED_WORKER = "mc-worker"
"""What memcached calls the threads that serve requests."""

NO_REQUESTS_PER_S = 1e-6
"""The load tool wants a rate above 0: this is one request in eleven days."""


@dataclass(frozen=True, slots=True)
class Memcached:
    """A memcached and the load of its open-loop client; perhaps a process beside it in the same workload
    whose threads burst in the background."""

    name: str
    threads: int = 2
    rate_per_s: float = 5_000
    connections: int = 16
    keys: int = 10_000
    key_bytes: int = 30
    value_bytes: int = 200
    get_ratio: float = 0.9
    background: int = 0
    burst_us: int = 10_000
    bursts_per_s: float = 15

    @property
    def vcpus(self) -> int:
        """Worker threads and background; memcached's own housekeeping threads are not vCPUs."""
        return self.threads + self.background

    @property
    def critical(self) -> tuple[str, ...]:
        """The threads that requests wait for, by name."""
        return (MEMCACHED_WORKER,)


@dataclass(frozen=True, slots=True)
class FanOut:
    """A service: main works, its helpers work in parallel, the request ends when all have."""

    name: str
    rate_per_s: float = 200
    helpers: int = 2
    serial_us: int = 500
    helper_us: int = 600
    background: int = 1
    burst_us: int = 10_000
    bursts_per_s: int = 15

    @property
    def vcpus(self) -> int:
        """main, the helpers and the background threads."""
        return 1 + self.helpers + self.background

    @property
    def critical(self) -> tuple[str, ...]:
        """The threads that requests wait for, by name."""
        return ("main", "helper-*")


@dataclass(frozen=True, slots=True)
class Service:
    """Any other service of the load tool: its options in full, how many threads that makes, and which of
    them requests wait for (names; `*` stands for any end). Without requests it is batch work."""

    name: str
    vcpus: int
    rate_per_s: float
    options: tuple[tuple[str, str], ...]
    critical: tuple[str, ...] = ()
    fed: bool = False
    """Its requests come from another process."""
    quota_cores: float | None = None
    """The CPU limit of its group, in layout vm."""
    vcpu_quota_cores: float | None = None
    """That of the group of each vCPU, as libvirt's `vcpu_quota`."""

    @property
    def is_batch(self) -> bool:
        """Does nobody ask it anything?"""
        return not self.critical


Tenant = Memcached | FanOut | Service


@dataclass(frozen=True, slots=True)
class Scenario:
    """All workloads of one host."""

    cores: int
    tenants: tuple[Tenant, ...]

    @property
    def vcpus(self) -> int:
        """Schedulable threads of all workloads."""
        return sum(tenant.vcpus for tenant in self.tenants)

    @property
    def consolidation_ratio(self) -> float:
        """vCPUs of all workloads per core."""
        return self.vcpus / self.cores


WARMUP_S = 2.0
"""As long as TSA takes from neutral to its bound (tests/unit/lab/kit/test_scenario.py)."""


@dataclass(frozen=True, slots=True)
class Timing:
    """One run: everything starts, then a warm-up in which policies settle, then the measured part."""

    seconds: float
    warmup_s: float = WARMUP_S
    lead_s: float = 1.2

    @property
    def total_s(self) -> float:
        """From the first process to the end of the measured part."""
        return self.lead_s + self.warmup_s + self.seconds


def seed_of(seed: int, repetition: int, index: int) -> int:
    """The arrivals of one tenant in one repetition: no arm goes in, so all arms have the same."""
    return (seed * 1_000 + repetition) * 1_000 + index


def load_arguments(tenant: Tenant, timing: Timing, seed: int, calibration: float) -> tuple[str, ...]:
    """What the load tool is told, apart from where (ports, files, the time of the start)."""
    common = {
        "seconds": f"{timing.seconds:g}",
        "warmup": f"{timing.warmup_s:g}",
        "rate": f"{tenant.rate_per_s:g}",
        "seed": str(seed),
    }
    if isinstance(tenant, Memcached):
        return ("memcached", *_options(common | _memcached_options(tenant)))
    options = dict(tenant.options) if isinstance(tenant, Service) else _service_options(tenant)
    fed = ("--feeder",) if isinstance(tenant, Service) and tenant.fed else ()
    calibrated = {"iterations-per-us": repr(calibration)}
    return ("service", *_options(common | options | calibrated), *fed)


def beside(tenant: Memcached) -> Service:
    """The process of background work in the same workload as a memcached."""
    options = {
        "helpers": "0",
        "background": str(tenant.background),
        "background-burst-us": str(tenant.burst_us),
        "background-rate": f"{tenant.bursts_per_s:g}",
    }
    return Service(f"{tenant.name}-beside", tenant.background, NO_REQUESTS_PER_S, tuple(options.items()))


def _memcached_options(tenant: Memcached) -> dict[str, str]:
    return {
        "connections": str(tenant.connections),
        "keys": str(tenant.keys),
        "key-bytes": str(tenant.key_bytes),
        "value-bytes": str(tenant.value_bytes),
        "get-ratio": f"{tenant.get_ratio:g}",
    }


def _service_options(tenant: FanOut) -> dict[str, str]:
    return {
        "variant": "fanout",
        "helpers": str(tenant.helpers),
        "serial-us": str(tenant.serial_us),
        "helper-us": str(tenant.helper_us),
        "background": str(tenant.background),
        "background-burst-us": str(tenant.burst_us),
        "background-rate": str(tenant.bursts_per_s),
    }


def _options(values: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(part for name, value in values.items() for part in (f"--{name}", value))
