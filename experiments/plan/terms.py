"""What every experiment that is made of plans says, whatever its loads. Pure; guests import it."""

from __future__ import annotations

import abc
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, ClassVar, Generic, Protocol, TypeVar

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field

from dasec.lab.kit.arms import arms_for
from dasec.lab.kit.bench import RunPlan
from dasec.lab.kit.layout import GroupLayout
from dasec.lab.kit.scenario import Scenario, Timing

from ..places.counted.cpus import Cpus
from ..places.counted.speed import cpus_for
from .arms import known
from .blocks import Block, Named

Name = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]*$")]
NameIfAny = Annotated[str, Field(pattern=r"^([a-z0-9][a-z0-9-]*)?$")]
"""They become parts of names of files."""

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1)]
Number = Annotated[int, Field(ge=1, le=1000)]
"""Of what is made one by one, as repetitions and VMs."""

Ratio = Annotated[float, Field(gt=0, le=1000)]
"""Threads a core."""

RUN_OVERHEAD_S = 0.8
"""What a run takes beside its own time, about: 0.3 s to stop the daemon and remove groups, as in the demo
(experiments/studies/demo), and something for starts that were missed and made again."""


def _named(kernel: object) -> object:
    """6.1 is a number to TOML where nobody has quoted it."""
    return str(kernel) if isinstance(kernel, float) else kernel


def one_of(name: str, known: Collection[str]) -> str:
    """The name. ValueError if it is none of these."""
    if name not in known:
        raise ValueError(f"{name} is unknown: known are {', '.join(known)}")
    return name


def check_once(names: Sequence[str], mend: str = "give each a name of its own") -> None:
    """ValueError if two have one name, with what mends it."""
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"{', '.join(twice)}: there twice: {mend}")


class Place(StrEnum):
    """Where runs happen."""

    HOST = "host"
    COUNTED = "counted"
    """A guest whose CPUs share 1000 MIPS: the fewer, the faster."""

    TESTBED = "testbed"
    """A guest whose CPUs have 500 MIPS each, however many there are."""


class PlacedCell(Named, Protocol):
    """What a block measures."""

    @property
    def layout(self) -> str:
        """How its groups are nested."""

    @property
    def scenario(self) -> Scenario:
        """Its workloads."""


class HasArms(Protocol):
    """Whatever has the plain host, its control, and policies."""

    @property
    def arms(self) -> tuple[str, ...]:
        """Their names."""


PlacedT = TypeVar("PlacedT", bound=PlacedCell, covariant=True)


@dataclass(frozen=True, slots=True)
class Cells(Generic[PlacedT]):
    """Those that exist, and why others do not."""

    possible: Sequence[PlacedT]
    impossible: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms(abc.ABC):
    """The keys that all such files have; a folder of results belongs to one of these."""

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    title: str = ""
    """A line for whoever reads the file or its report."""
    place: Place = Place.HOST
    cpus: Annotated[int, Field(ge=0, le=128)] = 0
    """For the services; in a guest one more measures. 0: those of the host."""
    asking: Annotated[int, Field(ge=0, le=16)] = 0
    """CPUs of a guest for clients alone; 0: they share the one that measures with the daemon."""
    kernel: Annotated[str, BeforeValidator(_named)] = "6.12"
    """Of a guest."""
    topology: tuple[Count, Count, Count] | None = None
    """Of the testbed: sockets, cores, threads. Their product is all CPUs: of services, the one that measures,
    of clients."""
    policies: tuple[Annotated[str, AfterValidator(known)], ...] = ("critical", "oracle")
    layouts: Annotated[tuple[GroupLayout, ...], Field(min_length=1)] = (GroupLayout.VM,)
    repetitions: Number = 4
    seconds: Annotated[float, Field(ge=0.2, le=3600)] = 5.0
    warmup_s: Annotated[float, Field(ge=0, le=600)] = 2.0
    lead_s: Annotated[float, Field(ge=0.1, le=60)] = 1.0
    """For the services and the daemon to start."""
    seed: Annotated[int, Field(ge=0, lt=2**31)] = 1
    blame: bool = False
    """Watch who waits for whom, in all arms alike."""
    records: bool = False
    """Keep the daemon's record of every run."""

    @property
    @abc.abstractmethod
    def cells(self) -> Cells[PlacedCell]:
        """Everything that is to be measured."""

    @abc.abstractmethod
    def plan(self, block: Block[PlacedCell]) -> RunPlan:
        """The block as the kit takes it."""

    @property
    def same_requests(self) -> bool:
        """Whether all arms of a block answer as many requests."""
        return True

    @property
    def is_seated(self) -> bool:
        """Whether each vCPU of a guest keeps to one CPU."""
        return False

    @property
    def arms(self) -> tuple[str, ...]:
        """The plain host, its control, and each policy."""
        return arms_for(self.policies)

    @property
    def timing(self) -> Timing:
        """Of each run."""
        return Timing(self.seconds, self.warmup_s, self.lead_s)

    @property
    def run_s(self) -> float:
        """How long a run takes, about."""
        return self.timing.total_s + RUN_OVERHEAD_S

    @property
    def machine(self) -> Cpus:
        """The CPUs of a guest."""
        if self.place is Place.TESTBED:
            return cpus_for(self.cpus, topology=self.topology, asking=self.asking)
        return Cpus(self.cpus, asking=self.asking)

    def check_machine(self) -> None:
        """ValueError if there is no such guest."""
        if self.place is not Place.HOST and not self.cpus:
            raise ValueError("cpus is missing: a guest has as many as the file says")
        if self.topology is not None and self.place is not Place.TESTBED:
            raise ValueError("topology is of the testbed: leave it out")
        if self.asking and self.place is Place.HOST:
            raise ValueError("asking is of guests: leave it out")
        if self.place is Place.TESTBED:
            cpus_for(self.cpus, topology=self.topology, asking=self.asking)
