"""What a client may ask of the guest: requests, and what it counted.

vm-images/bare/src/request.h and statistics.h have the same layout. Its memcached is any other's.
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
FRAME = struct.Struct(">4H")
"""Of memcached, before each datagram: number, which datagram, of how many, nothing."""

NUMBERS = 1 << 16
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

    def statistics(self, vcpu: int, retry_s: float = RETRY_S, tries: int = TRIES) -> VcpuStatistics:
        """Asked again where an answer is missing: asking does not change what is counted of requests."""
        self._socket.settimeout(retry_s)
        packed = Request(Kind.STATISTICS).packed(vcpu) + bytes(STATISTICS.size)
        for _ in range(tries):
            self._socket.send(packed)
            try:
                return VcpuStatistics.parse(self._socket.recv(MOST_BYTES)[REQUEST.size :])
            except TimeoutError:
                continue
        raise TimeoutError(f"the guest did not answer {tries} times")

    def close(self) -> None:
        """The guest does not notice."""
        self._socket.close()


def framed(command: bytes, number: int) -> bytes:
    """A command to memcached as it is sent."""
    return FRAME.pack(number % NUMBERS, 0, 1, 0) + command


def set_command(key: str, data: bytes, flags: int = 0, end: str = "") -> bytes:
    """`end` is what follows on the line."""
    return f"set {key} {flags} 0 {len(data)}{end}\r\n".encode() + data + b"\r\n"


def get_command(*keys: str) -> bytes:
    """For those of them that are there."""
    return f"get {' '.join(keys)}\r\n".encode()


@dataclass(frozen=True, slots=True)
class Value:
    """What memcached has under a key."""

    flags: int
    data: bytes


class Memcached:
    """A UDP socket to one guest's memcached: one command after the other, each sent once."""

    def __init__(self, address: tuple[str, int]) -> None:
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.connect(address)
        self._socket.settimeout(PATIENCE_S)
        self._sent = 0

    def tell(self, command: bytes) -> None:
        """Sent without waiting: `noreply`."""
        self._sent += 1
        self.throw(framed(command, self._sent))

    def throw(self, datagram: bytes) -> None:
        """As it is, frame and all."""
        self._socket.send(datagram)

    def ask(self, command: bytes) -> bytes:
        """The answer, without its frame."""
        self.tell(command)
        number, answer = self.hear()
        if number != self._sent % NUMBERS:
            raise ValueError(f"the guest's answer is not to what was asked: {answer!r}")
        return answer

    def hear(self) -> tuple[int, bytes]:
        """The next answer, and the number of the command."""
        answer = self._socket.recv(MOST_BYTES)
        number: int = FRAME.unpack_from(answer)[0]
        if not answer.startswith(framed(b"", number)):
            raise ValueError(f"the guest's answer has another frame: {answer!r}")
        return number, answer[FRAME.size :]

    def get(self, *keys: str) -> dict[str, Value]:
        """Those of them that are there."""
        left, found = self.ask(get_command(*keys)), {}
        while left != b"END\r\n":
            line, _, rest = left.partition(b"\r\n")
            word, key, flags, size = line.split(b" ")
            end = int(size)
            if word != b"VALUE" or rest[end : end + 2] != b"\r\n":
                raise ValueError(f"the guest's answer is no value: {left!r}")
            found[key.decode()] = Value(int(flags), rest[:end])
            left = rest[end + 2 :]
        return found

    def set(self, key: str, data: bytes, flags: int = 0) -> bytes:
        """What it says to that."""
        return self.ask(set_command(key, data, flags))

    def delete(self, key: str) -> bytes:
        """What it says to that."""
        return self.ask(f"delete {key}\r\n".encode())

    def close(self) -> None:
        """The guest does not notice."""
        self._socket.close()
