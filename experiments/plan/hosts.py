"""Hosts whose workloads differ, and of which some want CPUs of their own: `[[host]]`. Pure; guests import it.

What a workload requests is its share everywhere, and what it gets under an arm that reserves.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator, ConfigDict, Field

from dasec.lab.kit.arms import settings_of
from dasec.lab.kit.bench import RunPlan
from dasec.lab.kit.layout import GroupLayout
from dasec.lab.kit.load_driver import NO_REQUESTS_PER_S, EndlessService
from dasec.lab.kit.scenario import Scenario, Tenant, service
from dasec.lab.kit.tree import NEUTRAL

from .arms import RESERVING, capped, inner_of, known
from .blocks import Block
from .cells import Cell, plan_of
from .contests import ENDLESS
from .shapes import Background, fan_out
from .terms import Cells, Name, Number, Place, PlacedCell, Positive, Terms, check_once

BARRIER_US = 1000
"""What each thread computes between two barriers: rKube's programs (PARSEC, SPLASH-2) meet as often."""

BARRIERS_PER_S = 2000.0
"""Asked for; 1000 can be done. More only make the list of arrivals longer."""


def _known(arm: str) -> str:
    """The arm. ValueError if it is none."""
    return arm if arm in RESERVING else known(arm)


@dataclass(frozen=True, slots=True)
class Resident:
    """Workloads of one kind on such a host. `service`: requests by a schedule, main and helpers, and
    background threads beside them; `barriers`: batch work whose threads meet all the time; `computing`:
    threads that always want a CPU."""

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    name: Name
    kind: Literal["service", "barriers", "computing"]
    threads: Annotated[int, Field(ge=1, le=256)]
    cpus: Positive
    """That it requests."""
    count: Number = 1
    limited: bool = False
    """It has a CPU limit of as many."""
    reserved: bool = False
    """Under arms that reserve it gets them for itself."""
    rate_per_s: Annotated[float, Field(ge=0)] = 0.0
    background: Annotated[int, Field(ge=0)] = 0
    """Of a service's threads, those that burst on their own."""
    bursts_per_s: Positive = 24.0
    """Of all of them together, 10 ms each."""

    def __post_init__(self) -> None:
        if self.kind == "service":
            if not self.rate_per_s:
                raise ValueError("rate_per_s is missing: a service answers requests")
            if self.threads - self.background < 2:
                raise ValueError("a service needs main and a helper beside its background")
        elif self.rate_per_s or self.background:
            raise ValueError(f"rate_per_s and background are of a service, not of {self.kind}")
        elif self.kind == "barriers" and self.threads < 2:
            raise ValueError("barriers need two threads: one alone waits for nobody")

    def tenants(self) -> Iterator[Tenant]:
        """All of them."""
        made = {"service": self._service, "barriers": self._barriers, "computing": self._computing}[self.kind]
        for number in range(self.count):
            yield replace(
                made(f"{self.name}-{number}"),
                share=round(NEUTRAL * self.cpus),
                quota_cores=self.cpus if self.limited else None,
                reserved_cores=self.cpus if self.reserved else None,
            )

    def _service(self, name: str) -> Tenant:
        bursts = Background(self.background, 10_000, self.bursts_per_s) if self.background else None
        helpers = self.threads - self.background - 1
        return fan_out(self.rate_per_s, helpers, bursts).service(name, 1.0)

    def _barriers(self, name: str) -> Tenant:
        """Main computes, too, as the first thread of an OpenMP program does."""
        options = {
            "variant": "fanout",
            "helpers": str(self.threads - 1),
            "joins": "",
            "helper-us": str(BARRIER_US),
            "serial-us": "0",
            "distribution": "fixed",
        }
        made = service(name, self.threads, BARRIERS_PER_S, options)
        return replace(made, driver=EndlessService())

    def _computing(self, name: str) -> Tenant:
        """Main sleeps."""
        options = {"variant": "fanout", "helpers": "0", "background": str(self.threads)} | ENDLESS
        return service(name, 1 + self.threads, NO_REQUESTS_PER_S, options)


@dataclass(frozen=True, slots=True)
class Host:
    """Who is on one host."""

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    name: Name
    workload: Annotated[tuple[Resident, ...], Field(min_length=1)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Hosts(Terms):
    """Each host under all arms."""

    host: Annotated[tuple[Host, ...], Field(min_length=1)]
    policies: tuple[Annotated[str, AfterValidator(_known)], ...]
    place: Place = Place.TESTBED
    repetitions: Number = 1
    seconds: Positive = 2.0
    warmup_s: Annotated[float, Field(ge=0)] = 1.0
    lead_s: Positive = 6.0
    """As of the testbed's other experiments."""

    def __post_init__(self) -> None:
        self.check_machine()
        check_once([each.name for each in self.host])
        for each in self.host:
            check_once([one.name for one in each.workload])

    @property
    def cells(self) -> Cells[Cell]:
        """Every host."""
        return Cells(tuple(self._cell(each) for each in self.host))

    def _cell(self, host: Host) -> Cell:
        tenants = tuple(tenant for each in host.workload for tenant in each.tenants())
        scenario = Scenario(self.cpus, tenants)
        requested = sum(each.cpus * each.count for each in host.workload)
        return Cell(
            host.name,
            round(scenario.consolidation_ratio, 3),
            round(requested / self.cpus, 3),
            str(GroupLayout.VM),
            scenario,
        )

    def plan(self, block: Block[PlacedCell]) -> RunPlan:
        """The block as the kit takes it."""
        plan = plan_of(self, block)
        settings = {**plan.settings, **capped(block.arms, plan.settings)}
        for arm in block.arms:
            if arm in RESERVING:
                settings[arm] = settings_of(inner_of(arm))
        classes = {arm: RESERVING[arm] for arm in block.arms if arm in RESERVING}
        return replace(plan, settings=settings, classes=classes)
