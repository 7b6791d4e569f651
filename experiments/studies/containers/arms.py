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
    """`policy` is the daemon's; None: there is no daemon. `ask` is what the service asks for itself."""

    policy: str | None = None
    ask: str = ""
    more: str = ""
    limited: bool = False

    @property
    def options(self) -> tuple[str, ...]:
        """Of `docker run`."""
        return ("--cpus", f"{CPUS:g}") if self.limited else ()

    @property
    def told(self) -> str:
        """The daemon's configuration: all containers are named."""
        return (
            f'policy = "{self.policy}"\n[guard]\nenabled = false\n{self.more}'
            f'[[workload]]\nname = "{WEB}"\ncontainer = "docker:{WEB}"\n{self.ask}'
            f'[[workload]]\nname = "{BATCH}"\ncontainer = "docker:{BATCH}-*"\n'
        )


WHOLE = 'cpu = "whole"\ncpus = 1\n'
EXCLUSIVE = 'cpu = "exclusive"\ncpus = 1.5\n'
CAPS = '[bandwidth]\ncaps = true\n[host]\nown_cgroups = true\nweights = "on"\n'

PLAIN, AGAIN, LIMIT = "plain", "plain again", "limit"
ARMS: Mapping[str, Arm] = {
    PLAIN: Arm(),
    AGAIN: Arm(),
    "critical": Arm("critical"),
    "strict": Arm("none", WHOLE),
    "strict, critical within": Arm("critical", WHOLE),
    "WYSIWYG": Arm("none", EXCLUSIVE),
    LIMIT: Arm(limited=True),
    "limit, critical with caps": Arm("critical", more=CAPS, limited=True),
}
