"""Guests beside each other, their load, and where they run: what a block is of. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, ClassVar

from pydantic import ConfigDict, Field

VCPUS = 4
BACKGROUND_VCPU = 3
"""vCPU 0 has the network, vCPUs 1 and 2 help, vCPU 3 computes and nobody waits for it."""

SERIAL_US, HELPER_US, RATE_PER_S = 100, 200, 200.0
"""Three guests want 0.3 of a core for this, and more for the wake-ups, beside their background."""

BURST_US = 10_000
"""Of the background, as in all our loads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mix:
    """`memcached` of a `[[guests]]`: commands instead of requests to all helpers."""

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    value_bytes: Annotated[int, Field(ge=1, le=1024)] = 100
    get_ratio: Annotated[float, Field(ge=0, le=1)] = 0.9
    """Of all commands; the others set."""

    def words(self) -> str:
        """As in results and reports."""
        return f"memcached with values of {self.value_bytes} bytes and {100 * self.get_ratio:g} % gets"


@dataclass(frozen=True, slots=True, kw_only=True)
class Guests:
    """`[[guests]]` of a file: so many, all with the same load."""

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    number: Annotated[int, Field(ge=1, le=64)] = 3
    rate_per_s: Annotated[float, Field(ge=1, le=10_000)] = RATE_PER_S
    """Requests to each."""
    burst_us: Annotated[int, Field(ge=100, le=10_000_000)] = BURST_US
    """Of work, which takes longer where it waits for a CPU."""
    gap_us: Annotated[int, Field(ge=0, le=10_000_000)] = 0
    """The background rests so long after each burst; 0: it computes all the time."""
    memcached: Mix | None = None
    """Asked for this; None: the usual requests."""

    @property
    def names(self) -> tuple[str, ...]:
        """As in the daemon's configuration and in results."""
        return tuple(f"bare-{number}" for number in range(1, self.number + 1))

    @property
    def options(self) -> str:
        """Of the guest (vm-images/bare/README.md)."""
        background = f"background={1 << BACKGROUND_VCPU} burst_us={self.burst_us} gap_us={self.gap_us}"
        return f"helpers={VCPUS - 2} {background}"

    def words(self, kind: str) -> Iterator[str]:
        """So many of a kind, and what differs from background all the time and the usual requests."""
        yield f"{self.number} {kind}{'s' if self.number > 1 else ''}"
        if self.gap_us:
            yield f"bursts of {self.burst_us / 1000:g} ms, rests of {self.gap_us / 1000:g}"
        if self.memcached:
            yield self.memcached.words()
        if self.rate_per_s != RATE_PER_S:
            yield f"{self.rate_per_s:g} requests/s"


@dataclass(frozen=True, slots=True)
class Situation:
    """What is measured where: what runs the vCPUs, and who starts the guests."""

    guests: Guests
    accelerator: str
    libvirt: bool

    @property
    def name(self) -> str:
        """As in results and reports."""
        kind = "domain" if self.libvirt else "guest"
        return ", ".join((*self.guests.words(kind), self.accelerator))
