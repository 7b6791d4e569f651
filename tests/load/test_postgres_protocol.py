"""PostgreSQL's protocol, against a server of our own that answers in pieces, refuses, or is none."""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread

import pytest

from dasec.lab.kit.process import read_json

from .tool import Node, Tool

Answer = Callable[[int, bool], bytes]
"""Of a request by its number, and whether it is a set."""


def message(letter: bytes, body: bytes = b"") -> bytes:
    return letter + struct.pack("!I", len(body) + 4) + body


READY = message(b"Z", b"I")
LET_IN = message(b"R", bytes(4)) + message(b"S", b"TimeZone\0GMT\0") + message(b"K", bytes(8)) + READY
PREPARED = 2 * message(b"1") + READY
ROW = message(b"D", struct.pack("!HI", 1, 5) + b"value")
REFUSED = message(b"E", b"SERROR\0Mno\0\0")


def reply(number: int, is_set: bool, found: bool = True) -> bytes:  # noqa: ARG001  # an Answer
    if is_set:
        return message(b"2") + message(b"C", b"INSERT 0 1\0") + READY
    return message(b"2") + (ROW if found else b"") + message(b"C", b"SELECT 1\0") + READY


@contextmanager
def server(answer: Answer, *, greeting: bytes = LET_IN + PREPARED, piece: int = 65536) -> Iterator[int]:
    """One connection's; it sends so many bytes at a time."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = Thread(target=serve, args=(listening, answer, greeting, piece))
        thread.start()
        yield listening.getsockname()[1]
        thread.join()


def serve(listening: socket.socket, answer: Answer, greeting: bytes, piece: int) -> None:
    line, _ = listening.accept()
    with line, line.makefile("rb") as stream:
        line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        stream.read(struct.unpack("!I", stream.read(4))[0] - 4)
        said, number = greeting, 0
        is_greeted = is_set = False
        while header := stream.read(5):
            body = stream.read(struct.unpack("!I", header[1:])[0] - 4)
            is_set = body.startswith(b"\0set\0") if header[:1] == b"B" else is_set
            if header[:1] != b"S":
                continue
            if is_greeted:
                said, number = answer(number, is_set), number + 1
            is_greeted = True
            for start in range(0, len(said), piece):
                line.sendall(said[start : start + piece])
            if not said.endswith(READY):
                return  # as a server that lets nobody in


def ask(tool: Tool, port: int, out: Path, *more: str) -> Node:
    words = ("--seconds", "0.3", "--warmup", "0", "--rate", "300", "--keys", "20", "--connections", "1")
    done = tool.call("postgres", "--port", str(port), *words, "--out", str(out), *more)
    assert done.returncode == 0, done.stderr
    return Node(read_json(out))


@pytest.mark.parametrize("piece", [1, 2, 7, 65536])
def test_answers_may_come_in_pieces(tool: Tool, tmp_path: Path, piece: int) -> None:
    with server(reply, piece=piece) as port:
        found = ask(tool, port, tmp_path / "out")
    assert found["completed"].integer() == found["arrivals_scheduled"].integer() > 0
    assert (found["errors"].integer(), found["postgres"]["misses"].integer()) == (0, 0)


def test_a_row_that_is_not_there_is_a_miss(tool: Tool, tmp_path: Path) -> None:
    with server(lambda number, is_set: reply(number, is_set, found=False)) as port:
        found = ask(tool, port, tmp_path / "out", "--get-ratio", "1")["postgres"]
    assert found["misses"].integer() == found["gets"].integer() > 0


def test_what_the_server_refuses_is_an_error_of_that_request_alone(tool: Tool, tmp_path: Path) -> None:
    def every_third(number: int, is_set: bool) -> bytes:
        return REFUSED + READY if number >= 20 and number % 3 == 0 else reply(number, is_set)

    with server(every_third) as port:
        found = ask(tool, port, tmp_path / "out")
    scheduled, errors = found["arrivals_scheduled"].integer(), found["errors"].integer()
    assert scheduled // 3 <= errors <= scheduled // 3 + 1
    assert found["completed"].integer() == scheduled - errors


@pytest.mark.parametrize(
    "greeting",
    [REFUSED, LET_IN + REFUSED + READY, b"HTTP/1.1 400 Bad Request\r\n\r\n"],
    ids=["not-let-in", "no-table", "no-postgres"],
)
def test_a_server_that_takes_no_greeting_is_one_line(tool: Tool, greeting: bytes) -> None:
    with server(reply, greeting=greeting) as port:
        done = tool.call("postgres", "--port", str(port), "--connections", "1", "--seconds", "0.1")
    assert done.returncode == 1
    assert done.stderr == "dasec-load: postgres refused 1 of 1 in the greeting\n"
