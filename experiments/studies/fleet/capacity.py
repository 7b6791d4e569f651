"""How many VMs a host of the fleet holds, so that nearly always nearly all hosts keep to a limit of p99."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from .curves import CPUS, Curve, Floats
from .demand import VmSource

KEPT = 0.99
"""Part of the hosts' five minutes in which p99 must be within the limit."""


def balanced(means: Floats, hosts: int) -> np.ndarray[tuple[int], np.dtype[np.intp]]:
    """The host of each VM: the largest first, each to the next host and back again (boustrophedon), which is
    what a scheduler that knows the means does at best."""
    order = np.argsort(-means)
    place = np.arange(len(means)) % (2 * hosts)
    turns = np.where(place < hosts, place, 2 * hosts - 1 - place)
    found = np.empty(len(means), dtype=np.intp)
    found[order] = turns
    return found


def busy_parts(source: VmSource, hosts: int, vms_each: int, seed: int) -> Floats:
    """Of all hosts and steps of a day: the part of a host's CPUs that is asked for, sorted."""
    random = np.random.default_rng(seed)
    vms = source.vms(hosts * vms_each, random)
    where = balanced(vms.means, hosts)
    days = [np.bincount(where, asked, hosts) / CPUS for asked in vms.day(random)]
    return np.sort(np.concatenate(days))


def kept(busy: Floats, most_busy: float) -> float:
    """Part of the hosts' steps that is no busier than that."""
    return float(np.searchsorted(busy, most_busy, side="right") / len(busy))


def held(busy_at: Mapping[int, Floats], curve: Curve, limit_ms: float) -> float:
    """VMs a host, between whole numbers by the part that is kept; `busy_at`: by VMs a host, ascending."""
    most = curve.most_busy(limit_ms)
    parts = {vms: kept(busy, most) for vms, busy in busy_at.items()}
    good = [vms for vms, part in parts.items() if part >= KEPT]
    if not good:
        return 0.0
    last = max(good)
    beyond = parts.get(last + 1)
    if beyond is None:
        raise ValueError(f"more than {last} VMs a host are held: try more")
    return last + (parts[last] - KEPT) / (parts[last] - beyond)
