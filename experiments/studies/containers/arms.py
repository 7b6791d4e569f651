"""What is compared: the container's own limit, and what the daemon is told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

WEB, BATCH = "web", "batch"
BATCHES = 2

CPUS = 0.75
"""The limit, where there is one. The container wants 0.7 on average, more now and then: so it binds."""


@dataclass(frozen=True, slots=True)
class Arm:
    """`told` is the daemon's configuration; None: there is no daemon."""

    told: str | None = None
    limited: bool = False

    @property
    def options(self) -> tuple[str, ...]:
        """Of `docker run`."""
        return ("--cpus", f"{CPUS:g}") if self.limited else ()


def told(policy: str, ask: str = "", more: str = "") -> str:
    """All containers are named; `ask` is what the service asks for itself."""
    return (
        f'policy = "{policy}"\n[guard]\nenabled = false\n{more}'
        f'[[workload]]\nname = "{WEB}"\ncontainer = "docker:{WEB}"\n{ask}'
        f'[[workload]]\nname = "{BATCH}"\ncontainer = "docker:{BATCH}-*"\n'
    )


WHOLE = 'cpu = "whole"\ncpus = 1\n'
EXCLUSIVE = 'cpu = "exclusive"\ncpus = 1.5\n'
CAPS = '[bandwidth]\ncaps = true\n[host]\nown_cgroups = true\nweights = "on"\n'

PLAIN, AGAIN, LIMIT = "plain", "plain again", "limit"
ARMS: Mapping[str, Arm] = {
    PLAIN: Arm(),
    AGAIN: Arm(),
    "critical": Arm(told("critical")),
    "strict": Arm(told("none", WHOLE)),
    "strict, critical within": Arm(told("critical", WHOLE)),
    "WYSIWYG": Arm(told("none", EXCLUSIVE)),
    LIMIT: Arm(limited=True),
    "limit, critical with caps": Arm(told("critical", more=CAPS), limited=True),
}
