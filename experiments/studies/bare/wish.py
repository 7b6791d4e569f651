"""What is asked: guests, their load, arms. Pure."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator, ConfigDict, Field

from dasec.config.config import ConfigError, check
from dasec.lab.kit.arms import CONTROL, GUARDED, NONE, arms_for, settings_of
from dasec.lab.kit.controller import Managed, configuration
from dasec.lab.kit.ratios import FEWEST
from dasec.lab.kit.tree import CLIENT, DAEMON, LARGEST, MACHINE, NEUTRAL, TOP, Group

from ...plan.arms import known
from ...plan.blocks import Block, blocks_of
from ...plan.oracle import ORACLE, oracle_settings
from ...plan.terms import Number, check_once
from ...plan.variants import variant_of
from .situation import BACKGROUND_VCPU, VCPUS, Guests, Situation

CRITICAL = "critical"

EMULATOR = "qemu-system-x86"
"""QEMU's main thread, as the kernel cuts its name: each packet goes through it."""

Emulator = Literal["never", "follow"]
FOLLOW: Emulator = "follow"

OWN_GROUPS = "[host]\nown_cgroups = true\n"
"""QEMU started by hand leaves all its threads in one group; a vCPU has a weight only in its own."""

FEWEST_REQUESTS = 100
"""For a p99."""

STARTING_S = 2.0
"""Of a run with the daemon, about; a run without has less."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """The keys of a file; a folder of results belongs to one of these."""

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    title: str = ""
    bare: Literal[True] = True
    libvirt: bool = False
    """Guests are domains, and the daemon finds them."""
    emulator: Emulator = "never"
    """QEMU's main thread of each domain: in the daemon's configuration, `[libvirt] emulator`."""
    guests: Annotated[tuple[Guests, ...], Field(min_length=1)] = (Guests(),)
    """Each is measured by itself."""
    policies: tuple[Annotated[str, AfterValidator(known)], ...] = (CRITICAL, ORACLE)
    """Beside the plain host and that once more."""
    repetitions: Number = FEWEST
    """Fewer tell nothing."""
    seconds: Annotated[float, Field(ge=0.5, le=600)] = 4.0
    warmup_s: Annotated[float, Field(ge=0, le=60)] = 2.0
    seed: Annotated[int, Field(ge=0, lt=2**31)] = 1

    def __post_init__(self) -> None:
        if self.emulator == FOLLOW and not self.libvirt:
            raise ValueError("emulator: is about domains: set libvirt = true, too")
        if self.arms == (NONE, CONTROL):
            raise ValueError("policies: names nothing beside the plain host: give some, such as critical")
        check_once([", ".join(one.words("guest")) for one in self.guests], "leave one out")
        if any(one.rate_per_s * self.seconds < FEWEST_REQUESTS for one in self.guests):
            raise ValueError(f"rate_per_s: a run has less than {FEWEST_REQUESTS} requests to a guest")

    @property
    def arms(self) -> tuple[str, ...]:
        """All that is compared."""
        return arms_for(self.policies)

    def situations(self, accelerator: str) -> tuple[Situation, ...]:
        """Guests after guests, as in the file."""
        return tuple(Situation(one, accelerator, self.libvirt) for one in self.guests)

    def blocks(self, accelerator: str) -> tuple[Block[Situation], ...]:
        """All that is to be measured, in its order."""
        return tuple(blocks_of(self.situations(accelerator), self.arms, self.repetitions, self.seed))

    @property
    def run_s(self) -> float:
        """A run takes about so long."""
        return self.warmup_s + self.seconds + STARTING_S


def groups(guests: Guests) -> tuple[Group, ...]:
    """All guests in one group: their vCPUs compete one by one, also with other guests'."""
    weight = NEUTRAL * guests.number * VCPUS
    return (Group(TOP, weight=weight), Group(MACHINE), Group(CLIENT, weight=LARGEST), Group(DAEMON))


def refused(arms: Iterable[str]) -> Iterator[str]:
    """Those of them that the daemon would refuse, when guests are up, with what is wrong."""
    for arm in arms:
        try:
            if arm not in (NONE, CONTROL):
                check(tomllib.loads(told(arm, "kvm", {"bare-1": 1})), arm)
        except (ConfigError, tomllib.TOMLDecodeError) as error:
            yield f"policies: {str(error).splitlines()[0]}"


def told(arm: str, accelerator: str, guests: Mapping[str, int] | str, emulator: Emulator = "never") -> str:
    """The daemon's configuration under an arm that has one; guests are processes by name, or a pattern of
    domains' names, of which QEMU's main threads are managed or not."""
    policy = arm.removesuffix(GUARDED)
    if policy == ORACLE:
        vcpus = [f"CPU {vcpu}/{accelerator.upper()}" for vcpu in range(VCPUS) if vcpu != BACKGROUND_VCPU]
        settings = oracle_settings([EMULATOR, *vcpus])
    else:
        variant = variant_of(policy)
        settings = variant.settings if variant else settings_of(policy).partition("\n[guard]")[0]
    if policy != arm:
        settings += "[guard]\nenabled = true\n"
    if isinstance(guests, str):
        domains = f'\n[libvirt]\nemulator = "{emulator}"\n' if emulator == FOLLOW else ""
        domains += f'\n[[workload]]\nname = "vms"\nlibvirt = "{guests}"\n'
        return configuration(arm, [], settings) + domains
    managed = [Managed(name, NEUTRAL * VCPUS, (pid,)) for name, pid in guests.items()]
    return configuration(arm, managed, settings + OWN_GROUPS)
