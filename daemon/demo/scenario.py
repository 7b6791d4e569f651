"""The consolidated workloads as data, and what each is told to do in one repetition.

Sized by cores, so that any machine is loaded alike: for every two cores one memcached with two
worker threads and, for every core, one fan-out service whose request needs three threads (a serial
stage, two helpers) beside a background thread that no request waits for. That makes five
vCPUs a core. The stage lengths are those of docs/measurements.md; rates and bursts were set for a
load of 0.7 to 0.8, the load generator included, before any policy was measured.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Memcached:
    """A memcached and the load of its open-loop client."""

    name: str
    threads: int = 2
    rate_per_s: int = 5_000
    connections: int = 16
    keys: int = 10_000
    key_bytes: int = 30
    value_bytes: int = 200
    get_ratio: float = 0.9

    @property
    def vcpus(self) -> int:
        """Worker threads; memcached's own housekeeping threads are not vCPUs."""
        return self.threads


@dataclass(frozen=True, slots=True)
class FanOut:
    """A service: main works, its helpers work in parallel, the request ends when all have."""

    name: str
    rate_per_s: int = 200
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


Tenant = Memcached | FanOut


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


def scenario_for(cores: int) -> Scenario:
    """The workloads for a machine with this many cores; an odd core gets a memcached half as busy."""
    memcacheds = [Memcached(f"memcached-{index}") for index in range(cores // 2)]
    if cores % 2:
        memcacheds.append(Memcached(f"memcached-{cores // 2}", threads=1, rate_per_s=2_500))
    services = [FanOut(f"service-{index}") for index in range(cores)]
    return Scenario(cores, (*memcacheds, *services))


@dataclass(frozen=True, slots=True)
class Timing:
    """One run: everything starts, then a warm-up in which policies settle, then the measured part."""

    seconds: float
    warmup_s: float = 2.0
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
        "rate": str(tenant.rate_per_s),
        "seed": str(seed),
    }
    if isinstance(tenant, Memcached):
        return ("memcached", *_options(common | _memcached_options(tenant)))
    return ("service", *_options(common | _service_options(tenant, calibration)))


def _memcached_options(tenant: Memcached) -> dict[str, str]:
    return {
        "connections": str(tenant.connections),
        "keys": str(tenant.keys),
        "key-bytes": str(tenant.key_bytes),
        "value-bytes": str(tenant.value_bytes),
        "get-ratio": f"{tenant.get_ratio:g}",
    }


def _service_options(tenant: FanOut, calibration: float) -> dict[str, str]:
    return {
        "variant": "fanout",
        "helpers": str(tenant.helpers),
        "serial-us": str(tenant.serial_us),
        "helper-us": str(tenant.helper_us),
        "background": str(tenant.background),
        "background-burst-us": str(tenant.burst_us),
        "background-rate": str(tenant.bursts_per_s),
        "iterations-per-us": repr(calibration),
    }


def _options(values: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(part for name, value in values.items() for part in (f"--{name}", value))
