"""Experiments with Debian's own servers in counted guests: `[[server]]`. Pure but for what the drivers
import; the guest imports it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, ClassVar

from pydantic import AfterValidator, ConfigDict, Field

from dasec.errors import Refusal
from dasec.lab.kit.bench import RunPlan
from dasec.lab.kit.driver import WorkOrder
from dasec.lab.kit.layout import GroupLayout
from dasec.lab.kit.scenario import Scenario, Tenant
from dasec.policies import POLICIES

from ..drivers.beside import BATCH
from ..drivers.kvm import MAIN, Kvm
from ..drivers.servers import IN_COUNTED_GUESTS, MODULES, SERVERS
from ..drivers.tailbench import TailBench
from .arms import FOLLOW, following, known
from .blocks import Block
from .cells import Cell, plan_of
from .terms import Cells, Count, NameIfAny, Number, Place, PlacedCell, Positive, Terms, check_once, one_of


def _served(name: str) -> str:
    """The driver. ValueError if there is none of that name."""
    return one_of(name, SERVERS)


def _known(arm: str) -> str:
    """The arm. ValueError if it is none."""
    return arm if arm.removesuffix(FOLLOW) in POLICIES else known(arm)


@dataclass(frozen=True, slots=True)
class Application:
    """VMs with one of these servers each, and in each of them background of its own."""

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    driver: Annotated[str, AfterValidator(_served)]
    vms: Annotated[tuple[Number, ...], Field(min_length=1)]
    rates_per_s: Annotated[tuple[Positive, ...], Field(min_length=1)]
    """Requests of one VM."""
    request_us: Positive
    """What a request costs the machine, as it was measured; says how busy a cell will be."""
    name: NameIfAny = ""
    threads: Number = 1
    background: Annotated[int, Field(ge=0)] = 0
    """Threads that burst in the same VM."""
    burst_us: Count = 10_000
    bursts_per_s: Annotated[float, Field(ge=0)] = 0.0
    """Of all of them in a VM."""
    options: Mapping[str, str] = field(default_factory=dict)
    """The driver's own (experiments/drivers/README.md)."""

    def __post_init__(self) -> None:
        if bool(self.background) != bool(self.bursts_per_s):
            raise ValueError("background and bursts_per_s go together")
        for option, values in IN_COUNTED_GUESTS.get(self.driver, {}).items():
            if self.options.get(option) not in values:
                raise ValueError(f"options: {option}: guests that count have {', '.join(values)} only")
        try:
            self.tenant("any", 1.0)
        except Refusal as refusal:
            raise ValueError("; ".join(refusal.lines)) from None

    @property
    def called(self) -> str:
        """Its own name, or its driver's."""
        return self.name or self.driver

    def cores(self, rate_per_s: float) -> float:
        """What a VM computes, about."""
        return (rate_per_s * self.request_us + self.bursts_per_s * self.burst_us) / 1e6

    def tenant(self, name: str, rate_per_s: float) -> Tenant:
        """One VM."""
        driver, options = SERVERS[self.driver], dict(self.options)
        if self.background:
            options |= {"background": str(self.background), "burst-us": str(self.burst_us)}
            options |= {"bursts-per-s": f"{self.bursts_per_s / self.background:g}"}
        order = WorkOrder(name, self.threads, rate_per_s, 0, 0.0, 1.0, Path(), options)
        return Tenant(
            name,
            driver,
            driver.vcpus(order),
            rate_per_s,
            tuple(options.items()),
            driver.critical(order),
            threads=self.threads,
            vcpu_names=driver.vcpu_names,
            has_emulator=True,
            is_exact=driver.is_exact,
        )


def _as_domain(tenant: Tenant) -> Tenant:
    """Requests wait for QEMU's main thread, too, which the daemon may have to do with here."""
    return replace(tenant, is_domain=True, critical=(*tenant.critical, MAIN))


def _batch(name: str) -> str:
    """The driver. ValueError if there is none of that name."""
    return one_of(name, BATCH)


@dataclass(frozen=True, slots=True)
class Computing:
    """VMs beside them that compute all of the time."""

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    driver: Annotated[str, AfterValidator(_batch)]
    vms: Number
    threads: Number
    options: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        order = WorkOrder("any", self.threads, 0.0, 0, 0.0, 1.0, Path(), self.options)
        try:
            BATCH[self.driver].checked(order)
        except Refusal as refusal:
            raise ValueError("; ".join(refusal.lines)) from None

    @property
    def tenants(self) -> Iterator[Tenant]:
        """All of them."""
        driver = BATCH[self.driver]
        for index in range(self.vms):
            name = f"{self.driver}-{index}"
            yield Tenant(name, driver, self.threads, options=tuple(self.options.items()), is_exact=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Servers(Terms):
    """Each server at each rate and number of VMs, each time beside all of the batch work."""

    server: Annotated[tuple[Application, ...], Field(min_length=1)]
    batch: tuple[Computing, ...] = ()
    policies: tuple[Annotated[str, AfterValidator(_known)], ...]
    domains: bool = False
    """Virtual machines look like libvirt's domains, and the daemon finds them as such."""
    place: Place = Place.TESTBED
    repetitions: Number = 1
    seconds: Positive = 3.0
    warmup_s: Annotated[float, Field(ge=0)] = 1.5
    lead_s: Positive = 5.0
    memory_mib: Count = 1536
    """Of the guest."""

    def __post_init__(self) -> None:
        if self.place is not Place.TESTBED:
            raise ValueError("place: [[server]] runs in the testbed; on a host use [[mix]]")
        if self.domains and (
            self.batch
            or self.layouts != (GroupLayout.VM,)
            or any(one.driver != Kvm().name for one in self.server)
        ):
            raise ValueError(f"domains: are of the driver {Kvm().name} alone, in the layout {GroupLayout.VM}")
        if not self.domains and any(arm.endswith(FOLLOW) for arm in self.policies):
            raise ValueError(f"policies: {FOLLOW}: is about domains: set domains = true, too")
        self.check_machine()
        every = list(self._cells())
        different = [cell for number, cell in enumerate(every) if cell not in every[:number]]
        check_once([cell.name for cell in different], "give each server a name of its own")

    @property
    def packages(self) -> Mapping[str, str]:
        """Of Debian, by the programs that guests need of them."""
        drivers = (SERVERS[one.driver] for one in self.server)
        found = {driver.program: driver.package for driver in drivers}
        for one in self.batch:
            found |= BATCH[one.driver].packages
        return found

    @property
    def modules(self) -> tuple[str, ...]:
        """Of the kernel, that guests need."""
        return tuple(dict.fromkeys(name for one in self.server for name in MODULES.get(one.driver, ())))

    @property
    def applications(self) -> tuple[str, ...]:
        """Of TailBench, that guests need."""
        drivers = (SERVERS[one.driver] for one in self.server)
        return tuple(dict.fromkeys(one.application for one in drivers if isinstance(one, TailBench)))

    @property
    def cells(self) -> Cells[Cell]:
        """Every server at every rate, number of VMs and layout."""
        return Cells(tuple({cell.name: cell for cell in self._cells()}.values()))

    def _cells(self) -> Iterator[Cell]:
        for one in self.server:
            for rate_per_s in one.rates_per_s:
                for vms in one.vms:
                    tenants = tuple(one.tenant(f"{one.driver}-{index}", rate_per_s) for index in range(vms))
                    if self.domains:
                        tenants = tuple(map(_as_domain, tenants))
                    beside = tuple(tenant for each in self.batch for tenant in each.tenants)
                    scenario = Scenario(self.cpus, (*tenants, *beside))
                    cores = vms * one.cores(rate_per_s) + sum(tenant.vcpus for tenant in beside)
                    asked = round(min(1.0, cores / self.cpus), 3)
                    for layout in self.layouts:
                        name = f"{one.called}-{vms}x{rate_per_s:g}"
                        yield Cell(name, scenario.consolidation_ratio, asked, str(layout), scenario)

    def plan(self, block: Block[PlacedCell]) -> RunPlan:
        """The block as the kit takes it."""
        plan = plan_of(self, block)
        settings = {**plan.settings, **following(self.arms, plan.settings)}
        return replace(plan, settings=settings)
