"""Where what comes new should go: which nodes of a cluster may have it, and how well each would do.

Nodes of which nothing is recorded may have anything and are neither better nor worse than a node at the
limit: who has not rolled out everywhere is not kept from any node.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ..reservations import Refused
from .allocate import fit
from .fleet import FleetHost, Resident
from .hint import SOURCE_OVER, TARGET_AT_MOST
from .waits import wait_with

BEST = 10
"""The highest score that kube-scheduler takes of an extender (MaxExtenderPriority)."""


class Chosen(NamedTuple):
    """The nodes that may have it, in the order in which they were named, and why the others may not."""

    nodes: tuple[str, ...]
    failed: Mapping[str, str]


def choose(nodes: Sequence[str], hosts: Mapping[str, FleetHost], coming: Resident) -> Chosen:
    """A reservation goes only where it fits. Otherwise a node may not have it that would wait too much; if
    that were all of them, each may: it is better served late than not at all."""
    hindrance = _too_crowded if coming.ask is None else _no_room
    failed = {node: why for node in nodes if (why := hindrance(hosts.get(node), coming))}
    if coming.ask is None and len(failed) == len(nodes):
        failed = {}
    return Chosen(tuple(node for node in nodes if node not in failed), failed)


def score(node: str, hosts: Mapping[str, FleetHost], coming: Resident) -> int:
    """0 to BEST: BEST where nobody would wait, 0 where a host waits so much that work is moved away."""
    host = hosts.get(node)
    there_wait = TARGET_AT_MOST if host is None else simulated_wait(host, coming)
    return round(BEST * max(0.0, 1 - there_wait / SOURCE_OVER))


def simulated_wait(host: FleetHost, coming: Resident) -> float:
    """What the host would wait with it, 0 to 1."""
    return wait_with(host, host.vcpus + coming.vcpus, host.runnable_cores + coming.runnable_cores)


def _too_crowded(host: FleetHost | None, coming: Resident) -> str | None:
    if host is None or (there_wait := simulated_wait(host, coming)) <= TARGET_AT_MOST:
        return None
    return f"would wait {there_wait:.1%} of the time, over {TARGET_AT_MOST:.0%}"


def _no_room(host: FleetHost | None, coming: Resident) -> str | None:
    if host is None:
        return None
    found = fit(host, coming)
    return found.why if isinstance(found, Refused) else None
