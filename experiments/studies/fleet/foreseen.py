"""What the hints' rule expects hosts to wait after a move, and what hosts that busy were measured to wait."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from dasec.placement import FleetHost, Resident
from dasec.placement.waits import wait_with

from ...results.markdown import markdown_table
from .curves import CPUS, VM_CORES, Waits
from .measured_tables import ARMS
from .moves import VCPUS

SIZES = (4, 6, 7, 8, 9)
"""So many on the host that one leaves, or comes to: below that nobody waits."""

MOST = 9
"""With more no host was measured."""


class Foreseen(NamedTuple):
    """A host of so many VMs, one leaves or one comes: waits now, by the rule, as measured."""

    arm: str
    vms: int
    after: int
    now: float
    rule: float
    measured: float


def foreseen(waits: Mapping[str, Waits]) -> Iterator[Foreseen]:
    """Every such move."""
    for arm, known in waits.items():
        for vms in SIZES:
            now = known.part(vms * VM_CORES / CPUS)
            waiting = VM_CORES * now / (1 - now)
            residents = (Resident("vm", VCPUS, VM_CORES, waiting, waiting),) * vms
            host = FleetHost("host", CPUS, now, residents)
            for after in (vms - 1, min(vms + 1, MOST)):
                if after != vms:
                    wanted = host.runnable_cores * after / vms
                    rule = wait_with(host, VCPUS * after, wanted)
                    yield Foreseen(arm, vms, after, now, rule, known.part(after * VM_CORES / CPUS))


def foreseen_table(waits: Mapping[str, Waits]) -> str:
    """In percent of those who want a CPU."""
    lines = [
        [ARMS[one.arm], f"{one.vms} → {one.after}"]
        + [f"{100 * part:.0f}" for part in (one.now, one.rule, one.measured)]
        for one in foreseen(waits)
    ]
    return markdown_table(["arm", "VMs", "wait now, %", "after, by the rule, %", "measured, %"], lines)
