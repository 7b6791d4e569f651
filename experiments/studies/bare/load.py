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
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import TypeAdapter

from dasec.lab.kit.driver import DRAIN_S
from guests.bare.client import MOST_BYTES, NUMBERS, Kind, Request, framed, get_command, set_command

from .situation import Mix

KEYS = tuple(f"key-{number}" for number in range(1000))
"""Of memcached; all have a place."""

LATE_NS = 1_000_000
"""A request sent so long after its time was sent late by the client, not by a guest."""


@dataclass(frozen=True, slots=True)
class Orders:
    """What to send: the same requests or commands to each guest, from the warm-up to the end."""

    ports: tuple[int, ...]
    seeds: tuple[int, ...]
    rate_per_s: float
    serial_us: int
    helper_us: int
    warmup_s: float
    seconds: float
    memcached: Mix | None = None

    def packer(self, seed: int) -> Callable[[int], bytes]:
        """What is sent to a guest, by number."""
        mix = self.memcached
        if mix is None:
            return Request(Kind.FANOUT, serial_us=self.serial_us, helper_us=self.helper_us).packed
        chance = random.Random(f"commands, {seed}")
        return lambda number: framed(_command(mix, chance), number)

    def number_of(self, answer: bytes, last: int) -> int:
        """What is answered; memcached says a few bits of its number, and `last` was sent last."""
        if self.memcached is None:
            return int.from_bytes(answer[4:8], "little")
        return last - (last - int.from_bytes(answer[:2], "big")) % NUMBERS


def _command(mix: Mix, chance: random.Random) -> bytes:
    key = chance.choice(KEYS)
    return get_command(key) if chance.random() < mix.get_ratio else set_command(key, bytes(mix.value_bytes))


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
    packed: Callable[[int], bytes]
    sent: int = 0
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
        _Guest(_connected(port), list(arrivals_ns(orders.rate_per_s, total_s, seed)), orders.packer(seed))
        for port, seed in zip(orders.ports, orders.seeds, strict=True)
    ]
    due = list(heapq.merge(*([(at, which) for at in one.scheduled_ns] for which, one in enumerate(guests))))
    start_ns, first_ns = time.monotonic_ns(), int(orders.warmup_s * 1e9)
    for at_ns, which in due:
        _collect(orders, guests, start_ns, at_ns, first_ns)
        one = guests[which]
        if at_ns >= first_ns and time.monotonic_ns() - start_ns - at_ns > LATE_NS:
            one.answers.late_sends += 1
        one.waiting[one.sent] = at_ns
        one.socket.send(one.packed(one.sent))
        one.sent += 1
    _collect(orders, guests, start_ns, int((total_s + drain_s) * 1e9), first_ns, until_empty=True)
    for one in guests:
        lost = [at_ns for at_ns in one.waiting.values() if at_ns >= first_ns]
        one.answers.unfinished = len(lost)
        one.answers.latencies_ns += [int(drain_s * 1e9)] * len(lost)
        one.socket.close()
    return [one.answers for one in guests]


def _collect(
    orders: Orders,
    guests: list[_Guest],
    start_ns: int,
    until_ns: int,
    first_ns: int,
    *,
    until_empty: bool = False,
) -> None:
    """Take what comes until that time, or until nothing is missing. Who is late takes what is there: else a
    client that is behind for good lets sockets overflow, and what guests answered counts as unfinished."""
    by_socket = {one.socket: one for one in guests}
    while not until_empty or any(one.waiting for one in guests):
        left_ns = max(0, start_ns + until_ns - time.monotonic_ns())
        ready, _, _ = select.select(list(by_socket), [], [], left_ns / 1e9)
        if not ready:
            return
        now_ns = time.monotonic_ns() - start_ns
        for one in (by_socket[each] for each in ready):
            number = orders.number_of(one.socket.recv(MOST_BYTES), one.sent - 1)
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
