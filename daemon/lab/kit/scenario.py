"""The workloads of one host as data, and what each is told to do in one repetition. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from .driver import Driver, WorkOrder
from .load_driver import FEEDER, LoadService
from .tree import NEUTRAL

SERVICE = LoadService()


@dataclass(frozen=True, slots=True)
class Tenant:
    """One of the workloads that share the host: how it is run, how many threads of it compete for cores, and
    which of them requests wait for (names; `*` stands for any end)."""

    name: str
    driver: Driver
    vcpus: int
    rate_per_s: float = 0.0
    options: tuple[tuple[str, str], ...] = ()
    critical: tuple[str, ...] = ()
    """Nobody asks batch work anything."""
    threads: int = 0
    """As its driver is asked for them; 0: as many as vCPUs."""
    vcpu_names: tuple[str, ...] = ("*",)
    """Of its threads those that are vCPUs."""
    has_emulator: bool = False
    """Has it other threads, too? They live in a group beside the vCPUs', as libvirt's emulator does."""
    is_domain: bool = False
    """Do its groups lie as those of libvirt's domains? The daemon is told its name there."""
    is_exact: bool = True
    """It has neither more nor fewer vCPUs than are written here, and all of them before it begins."""
    quota_cores: float | None = None
    """The CPU limit of its group, in layout vm."""
    vcpu_quota_cores: float | None = None
    """That of the group of each vCPU, as libvirt's `vcpu_quota`."""
    share: int = NEUTRAL
    """Its weight beside the others, as cpu.shares, in layout vm."""
    reserved_cores: float | None = None
    """What it gets for itself under an arm with reservations."""

    def order(self, seed: int, timing: Timing, folder: Path, calibration: float) -> WorkOrder:
        """For one run, whose files go below this folder. No arm goes in."""
        return WorkOrder(
            self.name,
            self.threads or self.vcpus,
            self.rate_per_s,
            seed,
            timing.warmup_s,
            timing.seconds,
            folder / self.name,
            dict(self.options),
            calibration,
        )


def service(
    name: str,
    vcpus: int,
    rate_per_s: float,
    options: Mapping[str, str],
    critical: tuple[str, ...] = (),
    *,
    fed: bool = False,
) -> Tenant:
    """The load tool's service, with all of its options; fed: its requests come from another process."""
    told = {**options, **({FEEDER: ""} if fed else {})}
    return Tenant(name, SERVICE, vcpus, rate_per_s, tuple(told.items()), critical)


FAN_OUT_SERIAL_US, FAN_OUT_HELPER_US = 500, 600


def fan_out(name: str, rate_per_s: float, helpers: int = 2, background: int = 1) -> Tenant:
    """A service: main works, its helpers work in parallel, the request ends when all have. Beside them
    background bursts of 10 ms."""
    options = {
        "variant": "fanout",
        "helpers": str(helpers),
        "serial-us": str(FAN_OUT_SERIAL_US),
        "helper-us": str(FAN_OUT_HELPER_US),
        "background": str(background),
        "background-burst-us": "10000",
        "background-rate": "15",
    }
    return service(name, 1 + helpers + background, rate_per_s, options, ("main", "helper-*"))


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
    """From the first process to the first request at least, so that all arms have the same past."""

    @property
    def total_s(self) -> float:
        """From the first process to the end of the measured part, where everything is up within the lead."""
        return self.lead_s + self.warmup_s + self.seconds


def seed_of(seed: int, repetition: int, index: int) -> int:
    """The arrivals of one tenant in one repetition: no arm goes in, so all arms have the same."""
    return (seed * 1_000 + repetition) * 1_000 + index
