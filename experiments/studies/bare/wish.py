"""What is asked: guests, their load, arms. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator, ConfigDict, Field

from dasec.lab.kit.arms import arms_for, schedule, settings_of
from dasec.lab.kit.controller import Managed, configuration
from dasec.lab.kit.ratios import FEWEST
from dasec.lab.kit.tree import CLIENT, DAEMON, LARGEST, MACHINE, NEUTRAL, TOP, Group

from ...plan.arms import known
from ...plan.oracle import ORACLE, oracle_settings
from ...plan.terms import Count
from ...plan.variants import variant_of

GUESTS, VCPUS = 3, 4
CRITICAL = "critical"

BACKGROUND_VCPU = 3
OPTIONS = f"helpers={VCPUS - 2} background={1 << BACKGROUND_VCPU}"
"""vCPU 0 has the network, vCPUs 1 and 2 help, vCPU 3 computes all the time and nobody waits for it."""

EMULATOR = "qemu-system-x86"
"""QEMU's main thread, as the kernel cuts its name: each packet goes through it."""

SERIAL_US, HELPER_US, RATE_PER_S = 100, 200, 200.0
"""Three guests want 0.3 of a core for this, and more for the wake-ups, beside their background."""

Emulator = Literal["never", "follow"]
FOLLOW: Emulator = "follow"

OWN_GROUPS = "[host]\nown_cgroups = true\n"
"""QEMU started by hand leaves all its threads in one group; a vCPU has a weight only in its own."""

STARTING_S = 2.0
"""Of a run with the daemon, about; a run without has less."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuickWish:
    """The keys of a file; a folder of results belongs to one of these."""

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    title: str = ""
    bare: Literal[True] = True
    libvirt: bool = False
    """Guests are domains, and the daemon finds them."""
    emulator: Emulator = "never"
    """QEMU's main thread of each domain: in the daemon's configuration, `[libvirt] emulator`."""
    policies: tuple[Annotated[str, AfterValidator(known)], ...] = (CRITICAL, ORACLE)
    """Beside the plain host and that once more."""
    repetitions: Count = FEWEST
    """Fewer tell nothing."""
    seconds: Annotated[float, Field(ge=0.5, le=600)] = 4.0
    warmup_s: Annotated[float, Field(ge=0, le=60)] = 2.0
    seed: Annotated[int, Field(ge=0, lt=2**31)] = 1

    def __post_init__(self) -> None:
        if self.emulator == FOLLOW and not self.libvirt:
            raise ValueError("emulator: is about domains: set libvirt = true, too")

    @property
    def arms(self) -> tuple[str, ...]:
        """All that is compared."""
        return arms_for(self.policies)

    @property
    def orders(self) -> tuple[tuple[str, ...], ...]:
        """The arms of each repetition, in their order."""
        return schedule(self.arms, self.repetitions, self.seed)

    @property
    def run_s(self) -> float:
        """A run takes about so long."""
        return self.warmup_s + self.seconds + STARTING_S


def groups() -> tuple[Group, ...]:
    """All guests in one group: their vCPUs compete one by one, also with other guests'."""
    weight = NEUTRAL * GUESTS * VCPUS
    return (Group(TOP, weight=weight), Group(MACHINE), Group(CLIENT, weight=LARGEST), Group(DAEMON))


def guest_names() -> tuple[str, ...]:
    """As in the daemon's configuration and in results."""
    return tuple(f"bare-{number}" for number in range(1, GUESTS + 1))


def told(arm: str, accelerator: str, guests: Sequence[int] | str, emulator: Emulator = "never") -> str:
    """The daemon's configuration under an arm that has one; guests are processes, or the names of domains,
    of which QEMU's main threads are managed or not."""
    if arm == ORACLE:
        vcpus = [f"CPU {vcpu}/{accelerator.upper()}" for vcpu in range(VCPUS) if vcpu != BACKGROUND_VCPU]
        settings = oracle_settings([EMULATOR, *vcpus])
    else:
        variant = variant_of(arm)
        settings = variant.settings if variant else settings_of(arm).partition("\n[guard]")[0]
    if isinstance(guests, str):
        domains = f'\n[libvirt]\nemulator = "{emulator}"\n' if emulator == FOLLOW else ""
        domains += f'\n[[workload]]\nname = "vms"\nlibvirt = "{guests}"\n'
        return configuration(arm, [], settings) + domains
    managed = [
        Managed(name, NEUTRAL * VCPUS, (pid,)) for name, pid in zip(guest_names(), guests, strict=True)
    ]
    return configuration(arm, managed, settings + OWN_GROUPS)


@dataclass(frozen=True, slots=True)
class Situation:
    """Where it was measured."""

    name: str

    @classmethod
    def of(cls, accelerator: str, *, libvirt: bool) -> Situation:
        """What runs the vCPUs, and who started the guests."""
        return cls(f"{GUESTS} {'domains' if libvirt else 'guests'}, {accelerator}")
