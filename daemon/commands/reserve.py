"""`dasec reserve --what-if`: what reservations of CPUs would come to on this host. Writes nothing."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import product
from typing import Any, NamedTuple

from ..errors import ExitStatus, Refusal
from ..linux import cpulist
from ..linux.cpus import cores_of, isolated
from ..linux.printable import printable
from ..reservations import (
    Ask,
    CpuClass,
    CpusetWrite,
    Principle,
    Refused,
    Reservations,
    allocate,
    release,
    writes,
)
from ..reservations.core_map import core_map
from ..reservations.take import CpuPlace

ASK = re.compile(r"(?P<name>[^=\s]+)=(?P<amount>\d{1,6}(\.\d{1,3})?)(:(?P<cpu_class>[a-z]+))?")
MACHINE = re.compile(r"(\d{1,4})x(\d{1,4})x(\d{1,4})")
MOST_CPUS = 8192
"""The largest NR_CPUS that x86 can be built with."""

RELEASE = "release"
EVERYBODY = "everybody else"


class Question(NamedTuple):
    """The command's arguments."""

    asks: Sequence[str]
    cpus: str | None
    apart: str | None
    machine: str | None
    best_effort: bool


def answer(question: Question, *, as_json: bool) -> tuple[str, list[str]]:
    """What to print, and what was refused, a line each. Refuses (status 2) what it cannot read."""
    state = _empty(question)
    principle = Principle.BEST_EFFORT if question.best_effort else Principle.HARD
    steps: list[tuple[str, tuple[CpusetWrite, ...]]] = []
    refused: list[str] = []
    for text in question.asks:
        after = _after(state, text, principle)
        if isinstance(after, Refused):
            refused.append(f"refused: {after.why}")
        else:
            steps.append((text, writes(state, after)))
            state = after
    if as_json:
        return json.dumps(_as_json(state, steps, refused), indent=2), refused
    return "\n".join(printable(line) for line in _lines(state, steps)), refused


def _empty(question: Question) -> Reservations:
    places = _places(question.machine)
    given = frozenset(places) if question.cpus is None else _cpus(question.cpus, "--cpus", places)
    rest = frozenset[int]() if question.apart is None else _cpus(question.apart, "--apart", places)
    if not given - rest:
        raise Refusal(ExitStatus.USAGE, "--apart: leaves no CPU to give: name fewer")
    return Reservations({cpu: places[cpu] for cpu in sorted(given - rest)}, apart=bool(rest))


def _places(machine: str | None) -> Mapping[int, CpuPlace]:
    """This host's CPUs, or those of a machine whose second threads come after all first ones, as in most."""
    if machine is None:
        unbalanced = isolated()
        return {cpu: CpuPlace(*place) for cpu, place in cores_of().items() if cpu not in unbalanced}
    found = MACHINE.fullmatch(machine)
    sockets, cores, threads = map(int, found.groups()) if found else (0, 0, 0)
    if not 0 < sockets * cores * threads <= MOST_CPUS:
        raise Refusal(
            ExitStatus.USAGE,
            f"--machine: {machine}: is not SOCKETSxCORESxTHREADS with at most {MOST_CPUS} CPUs: write 2x6x2",
        )
    each = product(range(threads), range(sockets), range(cores))
    return {cpu: CpuPlace(socket, core) for cpu, (_, socket, core) in enumerate(each)}


def _cpus(text: str, option: str, places: Mapping[int, CpuPlace]) -> frozenset[int]:
    try:
        named = cpulist.parse(text)
    except ValueError as error:
        raise Refusal(ExitStatus.USAGE, f"{option}: {error}") from error
    if not named:
        raise Refusal(ExitStatus.USAGE, f"{option}: names no CPU: give a list such as 0-3,8")
    if strange := named - places.keys():
        there = cpulist.render(places)
        raise Refusal(
            ExitStatus.USAGE,
            f"{option}: no CPU {cpulist.render(strange)} can be given here: there are {there}",
        )
    return named


def _after(state: Reservations, text: str, principle: Principle) -> Reservations | Refused:
    """The state after one argument."""
    key, _, value = text.partition("=")
    if key == RELEASE:
        if value not in state.grants:
            raise Refusal(ExitStatus.USAGE, f"{text}: nothing is reserved for {value!r} by then: ask first")
        return release(state, value)
    return allocate(state, ask_of(text), principle)


def ask_of(text: str) -> Ask:
    """NAME=CPUS[:CLASS], read. Refuses (status 2) what it cannot read."""
    found = ASK.fullmatch(text)
    if found is None:
        raise Refusal(
            ExitStatus.USAGE, f"{text}: is not NAME=CPUS[:CLASS]: write for instance web=2.5:exclusive"
        )
    try:
        cpu_class = CpuClass(found["cpu_class"] or CpuClass.SHARED)
    except ValueError as error:
        known = ", ".join(CpuClass)
        raise Refusal(ExitStatus.USAGE, f"{text}: no class {found['cpu_class']!r}: one of {known}") from error
    return Ask(found["name"], int(Decimal(found["amount"]) * 1000), cpu_class)


def _lines(state: Reservations, steps: Sequence[tuple[str, tuple[CpusetWrite, ...]]]) -> Iterator[str]:
    """The map of the CPUs, a line for each workload, and the writes in their order."""
    sockets = sorted({place.socket for place in state.places.values()})
    for socket in sockets:
        here = [cpu for cpu in state.places if state.places[cpu].socket == socket]
        runs = (f"{cpulist.render(run.cpus)}: {run.holders}" for run in core_map(state, here))
        yield f"socket {socket}: " + "  ".join(runs)
    yield ""
    yield f"{'workload':<20} {'class':<10} {'asked':>7} {'sees':>5}  {'CPUs':<16} limit"
    for name, grant in sorted(state.grants.items()):
        seen, limit = state.cpus_of(name), grant.ask.quota_millicores
        yield (
            f"{name:<20} {grant.ask.cpu_class:<10} {grant.ask.millicores / 1000:>7g} {len(seen):>5}"
            f"  {cpulist.render(seen):<16} {'none' if limit is None else f'{limit / 1000:g}'}"
        )
    if not state.apart:
        shared = cpulist.render(state.shared)
        yield f"{EVERYBODY:<20} {'':<10} {'':>7} {len(state.shared):>5}  {shared:<16} none"
    yield ""
    for text, order in steps:
        yield f"{text}: " + (
            ", then ".join(f"{write.name or EVERYBODY} on {cpulist.render(write.cpus)}" for write in order)
            or "writes nothing"
        )


def _as_json(
    state: Reservations, steps: Sequence[tuple[str, tuple[CpusetWrite, ...]]], refused: Sequence[str]
) -> Mapping[str, Any]:
    return {
        "pool": sorted(state.pool),
        "free_millicores": state.free_millicores,
        "workloads": {
            name: {
                "class": grant.ask.cpu_class,
                "millicores": grant.ask.millicores,
                "cpus": sorted(state.cpus_of(name)),
                "exclusive": sorted(grant.exclusive),
                "parts": dict(grant.parts),
                "quota_millicores": grant.ask.quota_millicores,
            }
            for name, grant in sorted(state.grants.items())
        },
        "steps": [
            {
                "ask": text,
                "writes": [{"workload": each.name or None, "cpus": sorted(each.cpus)} for each in order],
            }
            for text, order in steps
        ],
        "refused": list(refused),
    }
