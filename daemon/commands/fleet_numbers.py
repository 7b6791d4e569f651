"""A fleet from the numbers that Prometheus records of it (docs/fleet.md)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import NamedTuple

from ..errors import ExitStatus, Refusal
from ..placement import FleetHost, Lately, Resident
from ..reservations import Ask
from .prometheus import Sample, ask
from .reserve import MOST_CPUS

OF_HOSTS = ("dasec:host_wait:p90_10m", "dasec_cores")
OF_WORKLOADS = (
    "dasec_workload_vcpus",
    "dasec:workload_running_cores",
    "dasec:workload_waiting_cores",
    "dasec:workload_blame",
)
NOW = '{__name__=~"' + "|".join((*OF_HOSTS, *OF_WORKLOADS)) + '"}'
BEFORE = "dasec:workload_running_cores offset 30m"
WITHIN_A_DAY = "present_over_time(dasec:workload_running_cores[1d])"

Place = tuple[str, str]


class Told(NamedTuple):
    """By host, and by host and workload, each number under its name."""

    hosts: Mapping[str, Mapping[str, float]]
    workloads: Mapping[Place, Mapping[str, float]]


class Fleet(NamedTuple):
    """The hosts of which all is known, those of which something is missing and what, and what was before."""

    hosts: Sequence[FleetHost]
    left_out: Mapping[str, str]
    lately: Lately


def read(url: str, timeout_s: float, asks: Sequence[Ask], keep: Sequence[str]) -> Fleet:
    """The fleet now. Refuses as `prometheus.ask`, and with status 1 if nothing is recorded."""
    told = by_place(ask(url, NOW, timeout_s))
    hosts, left_out = hosts_of(told, asks, keep)
    if not hosts:
        missing = "; ".join(f"{name} has no {what}" for name, what in sorted(left_out.items())[:1])
        why = f"records no host's numbers ({missing or 'none at all'})"
        raise Refusal(ExitStatus.FAILED, f"{url}: {why}: load dasec-fleet.rules.yml there, wait ten minutes")
    before, day = (_places(ask(url, query, timeout_s)) for query in (BEFORE, WITHIN_A_DAY))
    changed = before ^ _places_now(told)
    return Fleet(
        hosts, left_out, Lately(frozenset((what, at) for at, what in day), frozenset(at for at, _ in changed))
    )


def by_place(samples: Sequence[Sample]) -> Told:
    """Two series of one place and name, as from two jobs of one host: the greater."""
    hosts: dict[str, dict[str, float]] = defaultdict(dict)
    workloads: dict[Place, dict[str, float]] = defaultdict(dict)
    for labels, value in samples:
        name, at = labels.get("__name__", ""), labels.get("instance", "")
        if name in OF_WORKLOADS:
            numbers = workloads[at, labels.get("workload", "")]
        elif name in OF_HOSTS:
            numbers = hosts[at]
        else:
            continue
        numbers[name] = max(value, numbers.get(name, 0.0))
    return Told(hosts, workloads)


def hosts_of(
    told: Told, asks: Sequence[Ask], keep: Sequence[str]
) -> tuple[list[FleetHost], Mapping[str, str]]:
    """The hosts by name, and of the others what is missing."""
    residents: dict[str, list[Resident]] = defaultdict(list)
    missing: dict[str, str] = {}
    reserved = {each.name: each for each in asks}
    for (at, name), numbers in sorted(told.workloads.items()):
        lacking = [each for each in OF_WORKLOADS if each not in numbers]
        if lacking:
            missing[at] = f"{lacking[0]} of {name}"
            continue
        vcpus, running, waiting, blame = (numbers[each] for each in OF_WORKLOADS)
        kept = any(fnmatchcase(name, pattern) for pattern in keep)
        residents[at].append(
            Resident(name, int(vcpus), running, waiting, blame, reserved.get(name), not kept)
        )
    hosts = []
    for at in sorted(told.hosts.keys() | residents.keys()):
        numbers = told.hosts.get(at, {})
        lacking = [each for each in OF_HOSTS if each not in numbers]
        if lacking:
            missing[at] = lacking[0]
        elif not 1 <= numbers["dasec_cores"] <= MOST_CPUS:
            missing[at] = "core yet" if numbers["dasec_cores"] < 1 else "number of cores that can be"
        if at not in missing:
            wait, cores_there = (numbers[each] for each in OF_HOSTS)
            hosts.append(FleetHost(at, int(cores_there), min(1.0, wait), tuple(residents[at])))
    return hosts, missing


def _places(samples: Sequence[Sample]) -> frozenset[Place]:
    return frozenset((each.labels.get("instance", ""), each.labels.get("workload", "")) for each in samples)


def _places_now(told: Told) -> frozenset[Place]:
    return frozenset(at for at, numbers in told.workloads.items() if OF_WORKLOADS[1] in numbers)
