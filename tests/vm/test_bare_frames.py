"""Frames as they are on the wire, to the freestanding guest: no whole datagrams, and the sums of answers."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from guests.bare.client import FRAME, MOST_BYTES, PATIENCE_S, framed, get_command, set_command
from guests.bare.machine import best_accelerator, running
from guests.bare.words import LOOPBACK, MEMCACHED_PORT, free_ports

pytestmark = pytest.mark.vm

IP, UDP = struct.Struct(">BBHHHBBH4s4s"), struct.Struct(">4H")
ETHERNET = bytes.fromhex("525400123456 020000000001 0800")
CLIENT, GUEST = bytes((10, 0, 2, 2)), bytes((10, 0, 2, 15))
CLIENT_PORT = 4711
SHORTEST = 60
"""Of Ethernet: what is shorter is padded."""


@contextmanager
def wire() -> Iterator[socket.socket]:
    """To a guest: each datagram on this host is a frame."""
    ours, its = free_ports()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as here:
        here.bind((LOOPBACK, ours))
        here.settimeout(PATIENCE_S)
        between = f"socket,id=net,udp={LOOPBACK}:{ours},localaddr={LOOPBACK}:{its}"
        with running(best_accelerator(), 2, wire=between):
            here.connect((LOOPBACK, its))
            yield here


def frame(payload: bytes, total: int = 0, length: int = 0, first: int = 0x45, fragment: int = 0) -> bytes:
    """What is said of lengths is more than there is by `total` and `length`."""
    length += UDP.size + len(payload)
    ip = IP.pack(first, 0, IP.size + UDP.size + len(payload) + total, 1, fragment, 64, 17, 0, CLIENT, GUEST)
    sent = ETHERNET + ip + UDP.pack(CLIENT_PORT, MEMCACHED_PORT, length & 0xFFFF, 0) + payload
    return sent.ljust(SHORTEST, b"\n")


def checked(answer: bytes) -> bytes:
    """The payload, if all before it is right."""
    assert answer[:14] == ETHERNET[6:12] + ETHERNET[:6] + ETHERNET[12:]
    header, udp = answer[14:34], UDP.unpack_from(answer, 34)
    total = sum(struct.unpack(">10H", header))
    assert (total & 0xFFFF) + (total >> 16) == 0xFFFF
    assert IP.unpack(header)[2] == len(answer) - 14
    assert (header[12:16], header[16:]) == (GUEST, CLIENT)
    assert udp == (MEMCACHED_PORT, CLIENT_PORT, len(answer) - 34, 0)
    return answer[42:]


def test_lengths_and_sums_of_answers_are_right_however_long_they_are() -> None:
    with wire() as here:
        for size in (0, 1, 2, 100, 1023, 1024):
            here.send(frame(framed(set_command("k", bytes(size)), 1)))
            assert checked(here.recv(MOST_BYTES)) == framed(b"STORED\r\n", 1)
            here.send(frame(framed(get_command("k"), 2)))
            value = b"VALUE k 0 %d\r\n" % size + bytes(size) + b"\r\nEND\r\n"
            assert checked(here.recv(MOST_BYTES)) == framed(value, 2)


def test_what_is_no_whole_datagram_is_dropped() -> None:
    command = framed(b"version\r\n", 1)
    whole = frame(command)
    broken = [
        *(whole[:end] for end in range(1, 14 + IP.size + UDP.size + FRAME.size)),
        *(frame(command, total=more) for more in (60, 1000, 60_000)),
        *(frame(command, length=more) for more in (1, 1000, 60_000, -len(command), -len(command) - 8)),
        frame(command, total=-1),
        frame(command, total=-len(command) - UDP.size - IP.size),
        *(frame(command, first=first) for first in (0x00, 0x44, 0x46, 0x4F, 0x65, 0xFF)),
        *(frame(command, fragment=fragment) for fragment in (0x2000, 1, 0x1FFF)),
        *(frame(framed(b"", 1)[:size]) for size in range(FRAME.size + 1)),
    ]
    with wire() as here:
        for number, each in enumerate(broken, start=2):
            here.send(each)
            here.send(frame(framed(get_command("none"), number)))
            assert checked(here.recv(MOST_BYTES)) == framed(b"END\r\n", number), each


def test_what_pads_a_short_frame_is_not_read() -> None:
    with wire() as here:
        here.send(frame(framed(b"get a", 1)))
        assert checked(here.recv(MOST_BYTES)) == framed(b"ERROR\r\n", 1)
