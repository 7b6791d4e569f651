"""A client of several guests at once, open loop: `python -m experiments.studies.bare.load ORDERS OUT`.

A process of its own, so that it lives in a group of its own beside the guests. A request's latency is from
the time for which it was scheduled, whenever it was sent.
"""

from __future__ import annotations

import heapq
import random
import select
import socket
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import TypeAdapter

from dasec.lab.kit.driver import DRAIN_S
from guests.bare.client import MOST_BYTES, Kind, Request

LATE_NS = 1_000_000
"""A request sent so long after its time was sent late by the client, not by a guest."""


@dataclass(frozen=True, slots=True)
class Orders:
    """What to send: the same request to each guest, from the warm-up to the end."""

    ports: tuple[int, ...]
    seeds: tuple[int, ...]
    rate_per_s: float
    serial_us: int
    helper_us: int
    warmup_s: float
    seconds: float


@dataclass(slots=True)
class Answers:
    """Of one guest, for requests of the measured part."""

    latencies_ns: list[int] = field(default_factory=list)
    unfinished: int = 0
    late_sends: int = 0


@dataclass(slots=True)
class _Guest:
    socket: socket.socket
    scheduled_ns: list[int]
    waiting: dict[int, int] = field(default_factory=dict)
    answers: Answers = field(default_factory=Answers)


ORDERS, ANSWERS = TypeAdapter(Orders), TypeAdapter(list[Answers])


def arrivals_ns(rate_per_s: float, total_s: float, seed: int) -> Iterator[int]:
    """Poisson arrivals, in ns from the start."""
    chance, at_s = random.Random(seed), 0.0
    while (at_s := at_s + chance.expovariate(rate_per_s)) < total_s:
        yield int(at_s * 1e9)


def drive(orders: Orders, drain_s: float = DRAIN_S) -> list[Answers]:
    """Send, and collect what comes back."""
    total_s = orders.warmup_s + orders.seconds
    guests = [
        _Guest(_connected(port), list(arrivals_ns(orders.rate_per_s, total_s, seed)))
        for port, seed in zip(orders.ports, orders.seeds, strict=True)
    ]
    request = Request(Kind.FANOUT, serial_us=orders.serial_us, helper_us=orders.helper_us)
    due = list(heapq.merge(*([(at, which) for at in one.scheduled_ns] for which, one in enumerate(guests))))
    numbers = [0] * len(guests)
    start_ns, first_ns = time.monotonic_ns(), int(orders.warmup_s * 1e9)
    for at_ns, which in due:
        _collect(guests, start_ns, at_ns, first_ns)
        one, number = guests[which], numbers[which]
        if at_ns >= first_ns and time.monotonic_ns() - start_ns - at_ns > LATE_NS:
            one.answers.late_sends += 1
        one.waiting[number] = at_ns
        one.socket.send(request.packed(number))
        numbers[which] += 1
    _collect(guests, start_ns, int((total_s + drain_s) * 1e9), first_ns, until_empty=True)
    for one in guests:
        lost = [at_ns for at_ns in one.waiting.values() if at_ns >= first_ns]
        one.answers.unfinished = len(lost)
        one.answers.latencies_ns += [int(drain_s * 1e9)] * len(lost)
        one.socket.close()
    return [one.answers for one in guests]


def _collect(
    guests: list[_Guest], start_ns: int, until_ns: int, first_ns: int, *, until_empty: bool = False
) -> None:
    """Take what comes until that time, or until nothing is missing."""
    by_socket = {one.socket: one for one in guests}
    while (left_ns := start_ns + until_ns - time.monotonic_ns()) > 0:
        if until_empty and not any(one.waiting for one in guests):
            return
        ready, _, _ = select.select(list(by_socket), [], [], left_ns / 1e9)
        now_ns = time.monotonic_ns() - start_ns
        for one in (by_socket[each] for each in ready):
            number = int.from_bytes(one.socket.recv(MOST_BYTES)[4:8], "little")
            at_ns = one.waiting.pop(number, None)
            if at_ns is not None and at_ns >= first_ns:
                one.answers.latencies_ns.append(now_ns - at_ns)


def _connected(port: int) -> socket.socket:
    made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    made.connect(("127.0.0.1", port))
    return made


def main(orders: str, out: str) -> None:
    """The answers go to a file."""
    Path(out).write_bytes(ANSWERS.dump_json(drive(ORDERS.validate_json(orders))))


if __name__ == "__main__":
    main(*sys.argv[1:])
