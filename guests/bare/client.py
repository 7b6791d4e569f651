"""What a client may ask of the guest: requests, and what it counted.

vm-images/bare/src/request.h and statistics.h have the same layout.
"""

from __future__ import annotations

import socket
import struct
from dataclasses import dataclass
from enum import IntEnum
from typing import Self

MAGIC = int.from_bytes(b"BARE", "little")
REQUEST = struct.Struct("<8IQ")
MOST_CPUS = 16
SINGLE_COUNTERS = 12
STATISTICS = struct.Struct(f"<{SINGLE_COUNTERS + 3 * MOST_CPUS}Q")
MOST_BYTES = 2048
PATIENCE_S = 120.0
"""What ends a test that hangs: a request is sent once."""

RETRY_S, TRIES = 5.0, 20
"""Statistics may be asked again: QEMU drops what comes before it knows the guest's address."""


class Kind(IntEnum):
    """How a request is served; the load tool's variants."""

    SINGLE = 0
    FANOUT = 1
    PIPELINE = 2
    CONVOY = 3
    STATISTICS = 255


@dataclass(frozen=True, slots=True)
class Request:
    """What a request computes where, in microseconds of the guest's work."""

    kind: Kind
    serial_us: int = 0
    helper_us: int = 0
    straggler_us: int = 0
    lock_us: int = 0
    tail_us: int = 0

    def packed(self, number: int) -> bytes:
        """As it is sent."""
        works = (self.serial_us, self.helper_us, self.straggler_us, self.lock_us, self.tail_us)
        return REQUEST.pack(MAGIC, number, self.kind, *works, 0)


@dataclass(frozen=True, slots=True)
class VcpuStatistics:
    """The guest's own truth about one of its vCPUs since its start; lists are by the other vCPU's number."""

    halts: int
    bells: int
    devices: int
    timers: int
    jobs: int
    quanta: int
    holds: int
    lock_waits: int
    woken_by_device: int
    woken_by_timer: int
    woken_late: int
    posted: tuple[int, ...]
    rang: tuple[int, ...]
    woken_by: tuple[int, ...]

    @classmethod
    def parse(cls, record: bytes) -> Self:
        """From an answer, behind the request."""
        cpus, *numbers = STATISTICS.unpack_from(record)
        single, lists = numbers[: SINGLE_COUNTERS - 1], numbers[SINGLE_COUNTERS - 1 :]
        rows = (tuple(lists[first : first + cpus]) for first in range(0, len(lists), MOST_CPUS))
        return cls(*single, *rows)

    @property
    def woken(self) -> int:
        """Halts that have ended."""
        return sum(self.woken_by) + self.woken_by_device + self.woken_by_timer + self.woken_late


class Client:
    """A UDP socket to one guest."""

    def __init__(self, address: tuple[str, int]) -> None:
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.connect(address)
        self._sent = 0

    def serve(self, request: Request) -> None:
        """One request, until its answer has come. Once: what the guest counts is what was asked."""
        self._socket.settimeout(PATIENCE_S)
        packed = request.packed(self._sent)
        self._sent += 1
        self._socket.send(packed)
        answer = self._socket.recv(MOST_BYTES)
        if answer != packed:
            raise ValueError(f"the guest's answer is not what was asked: {answer!r}")

    def statistics(self, vcpu: int) -> VcpuStatistics:
        """Asked again where an answer is missing: asking does not change what is counted of requests."""
        self._socket.settimeout(RETRY_S)
        packed = Request(Kind.STATISTICS).packed(vcpu) + bytes(STATISTICS.size)
        for _ in range(TRIES):
            self._socket.send(packed)
            try:
                return VcpuStatistics.parse(self._socket.recv(MOST_BYTES)[REQUEST.size :])
            except TimeoutError:
                continue
        raise TimeoutError(f"the guest did not answer {TRIES} times")

    def close(self) -> None:
        """The guest does not notice."""
        self._socket.close()
