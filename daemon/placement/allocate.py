"""Whether a host could hold a workload, and how well: the node's allocation, simulated (WYSIWYG, IV-D)."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

from ..reservations import Ask, CpuClass, Refused, Reservations, allocate
from ..reservations.grants import WHOLE
from ..reservations.take import CpuPlace
from .fleet import FleetHost, Resident


@dataclass(frozen=True, slots=True, order=True)
class Fit:
    """How well, the better the greater: cores of its own first, then little time on shared cores, then cores
    that are shared with few. All 0 for a workload that shares."""

    whole_cores: int = 0
    less_shared_millicores: int = 0
    less_crowded_millicores: int = 0


def fit(host: FleetHost, coming: Resident) -> Fit | Refused:
    """Room for it, or why not. Who shares needs as much as it and its present neighbours want on average;
    the topology of the host is not known here, so its CPUs are alike."""
    if any(each.name == coming.name for each in host.residents):
        return Refused(f"{host.name}: has a workload of the name {coming.name} already")
    before = _held(host)
    if isinstance(before, Refused):
        return before
    ask = coming.ask or Ask(coming.name, max(1, _millicores(coming)), CpuClass.SHARED)
    after = allocate(before, ask)
    if isinstance(after, Refused):
        return after
    grant = after.grants[ask.name]
    shared = sum(part for _, part in grant.parts)
    crowd = sum(before.used_parts.get(cpu, 0) for cpu, _ in grant.parts)
    return Fit(len(grant.exclusive), -shared, -crowd)


def _held(host: FleetHost) -> Reservations | Refused:
    """What is given now: reservations one by one, those who share as one."""
    state = Reservations({cpu: CpuPlace(0, cpu) for cpu in range(host.cores)})
    sharing = sum(_millicores(each) for each in host.residents if each.ask is None)
    asks = [each.ask for each in host.residents if each.ask is not None]
    for ask in (*asks, *([Ask("", sharing, CpuClass.SHARED)] if sharing else [])):
        after = allocate(state, ask)
        if isinstance(after, Refused):
            return after
        state = after
    return state


def _millicores(each: Resident) -> int:
    return ceil(each.runnable_cores * WHOLE)
