"""The client of vm-images/bare, against a server of our own by UDP."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread

import pytest

from dasec.lab.kit.process import read_json
from guests.bare.client import REQUEST, Kind, Request

from .tool import Node, Tool

POLL_S = 0.2
"""How often the server looks whether all is over."""

Answer = Callable[[int, bytes], list[bytes]]
"""What is sent back for a request by its number: any number of datagrams."""


def echo(number: int, asked: bytes) -> list[bytes]:  # noqa: ARG001  # an Answer
    return [asked]


class Server:
    """Takes what comes until all is over, and remembers it with who sent it."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.asked: list[tuple[bytes, int]] = []
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 0))
        self.over = False

    @property
    def port(self) -> str:
        return str(self.socket.getsockname()[1])

    def serve(self) -> None:
        self.socket.settimeout(POLL_S)
        while not self.over:
            try:
                asked, sender = self.socket.recvfrom(2048)
            except TimeoutError:
                continue
            self.asked.append((asked, sender[1]))
            for datagram in self.answer(len(self.asked) - 1, asked):
                self.socket.sendto(datagram, sender)


@contextmanager
def server(answer: Answer = echo) -> Iterator[Server]:
    made = Server(answer)
    thread = Thread(target=made.serve)
    thread.start()
    try:
        yield made
    finally:
        made.over = True
        thread.join()
        made.socket.close()


def ask(tool: Tool, made: Server, folder: Path, *more: str) -> Node:
    words = ("--seconds", "0.5", "--warmup", "0", "--rate", "200", "--drain-seconds", "0.5")
    done = tool.call("bare", "--port", made.port, *words, "--out", str(folder / "out"), *more)
    assert done.returncode == 0, done.stderr
    return Node(read_json(folder / "out"))


def test_a_request_says_what_is_to_be_computed_for_it(tool: Tool, tmp_path: Path) -> None:
    with server() as made:
        found = ask(tool, made, tmp_path, "--serial-us", "70", "--helper-us", "90")
    assert found["completed"].integer() == found["bare"]["hits"].integer() == len(made.asked)
    for number, (asked, _) in enumerate(made.asked):
        told = REQUEST.unpack(Request(Kind.FANOUT, serial_us=70, helper_us=90).packed(number))
        assert REQUEST.unpack(asked)[2:] == told[2:]
    assert sorted(REQUEST.unpack(asked)[1] for asked, _ in made.asked) == list(range(len(made.asked)))


def test_a_connection_has_one_request_on_its_way(tool: Tool, tmp_path: Path) -> None:
    with server(lambda number, asked: []) as made:  # noqa: ARG005  # an Answer
        found = ask(tool, made, tmp_path, "--connections", "7")
    assert len({sender for _, sender in made.asked}) == len(made.asked) == 7
    assert found["completed"].integer() == 0
    assert found["unfinished"].integer() == found["arrivals_scheduled"].integer()


def test_what_is_lost_costs_its_connection_and_no_other_request(tool: Tool, tmp_path: Path) -> None:
    with server(lambda number, asked: [asked] if number != 3 else []) as made:
        found = ask(tool, made, tmp_path, "--connections", "4")
    assert found["unfinished"].integer() == 1
    assert found["completed"].integer() == found["arrivals_scheduled"].integer() - 1


def test_what_is_lost_in_the_warm_up_is_told(tool: Tool, tmp_path: Path) -> None:
    with server(lambda number, asked: [asked] if number != 3 else []) as made:
        found = ask(tool, made, tmp_path, "--connections", "4", "--warmup", "0.2")
    assert found["warmup_arrivals"].integer() > 3
    assert found["unfinished"].integer() == 0
    assert found["bare"]["unanswered"].integer() == 1


@pytest.mark.parametrize("wrong", [b"x", bytes(40), bytes(39), Request(Kind.FANOUT).packed(7)])
def test_what_is_no_answer_is_an_error(tool: Tool, tmp_path: Path, wrong: bytes) -> None:
    with server(lambda number, asked: [asked] if number else [wrong]) as made:
        found = ask(tool, made, tmp_path, "--connections", "2")
    assert found["errors"].integer() == 1
    assert found["bare"]["connections_lost"].integer() == 1


def test_more_than_the_request_is_no_answer(tool: Tool, tmp_path: Path) -> None:
    with server(lambda number, asked: [asked] if number else [asked + b"x"]) as made:
        found = ask(tool, made, tmp_path, "--connections", "2")
    assert found["errors"].integer() == 1


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("bare", "--unix", "/run/x"), "--unix: must not be there: bare asks by UDP"),
        (("bare", "--get-ratio", "0.5"), "--get-ratio: must be 1: bare only gets, got '0.5'"),
        (("bare", "--key-bytes", "30"), "--key-bytes: must not be there: bare asks for work, of no key"),
        (("memcached", "--helper-us", "5"), "--helper-us: is of bare: memcached does its own work"),
        (("redis", "--serial-us", "5"), "--serial-us: is of bare: redis does its own work"),
    ],
)
def test_what_makes_no_sense_is_one_line(tool: Tool, words: tuple[str, ...], complaint: str) -> None:
    done = tool.call(*words)
    assert done.returncode == 2
    assert done.stderr.splitlines() == [f"dasec-load: {complaint}"]
