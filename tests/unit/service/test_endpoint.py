"""Whoever scrapes gets an answer, whatever other clients do; and every other client's time is over once."""

from __future__ import annotations

import socket
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest

from dasec.metrics.endpoint import CLIENTS, REQUEST_BYTES, ROUND_S, Endpoint
from guests.waiting import PATIENCE_S, wait_for

LOOPBACK = "127.0.0.1"
TEXT = b"dasec_periods_total 1\n"
LONG_TEXT = TEXT * 1_000_000
"""More than all buffers between the two ends hold."""

SCRAPE = b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n"
NEVER_S, SOON_S = 10 * PATIENCE_S, 0.3
"""How long a client may take, in tests that are not about it and in those that are."""


@contextmanager
def serving(text: bytes = TEXT, patience_s: float = NEVER_S) -> Iterator[Endpoint]:
    endpoint = Endpoint(LOOPBACK, 0, lambda: text, patience_s)
    try:
        yield endpoint
    finally:
        endpoint.close()


def client(endpoint: Endpoint, said: bytes = b"") -> socket.socket:
    """Has connected and said so much; reads into as small a buffer as there is."""
    made = socket.socket()
    made.settimeout(PATIENCE_S)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
    made.connect((LOOPBACK, endpoint.port))
    made.sendall(said)
    return made


def scraped(endpoint: Endpoint) -> bytes:
    with urllib.request.urlopen(f"http://{LOOPBACK}:{endpoint.port}/metrics", timeout=PATIENCE_S) as answer:
        return bytes(answer.read())


def left_to(one: socket.socket) -> int:
    """How many bytes it still gets before its connection ends. Its own patience over is an error."""
    got = 0
    try:
        while said := one.recv(1 << 20):
            got += len(said)
    except ConnectionResetError:
        pass
    return got


def can_say(one: socket.socket, what: bytes) -> bool:
    """Is there still somebody to hear it?"""
    try:
        one.sendall(what)
    except (ConnectionResetError, BrokenPipeError):
        return False
    return True


def test_a_client_that_says_a_byte_now_and_then_keeps_nobody_from_scraping() -> None:
    with serving() as endpoint, client(endpoint) as slow:
        for byte in SCRAPE[:20]:
            slow.sendall(bytes([byte]))
            assert scraped(endpoint) == TEXT


def test_a_client_that_reads_a_byte_now_and_then_keeps_nobody_from_scraping() -> None:
    with serving(LONG_TEXT) as endpoint, client(endpoint, SCRAPE) as slow:
        for _ in range(3):
            assert slow.recv(1)
            assert scraped(endpoint) == LONG_TEXT


def test_a_client_that_says_nothing_is_cut_off() -> None:
    with serving(patience_s=SOON_S) as endpoint, client(endpoint) as silent:
        assert left_to(silent) == 0


def test_a_client_that_never_ends_its_request_is_cut_off_however_often_it_says_something() -> None:
    with serving(patience_s=SOON_S) as endpoint, client(endpoint) as slow:
        wait_for(lambda: not can_say(slow, b"G"), every_s=SOON_S / 10)


def test_a_client_that_never_ends_reading_is_cut_off_and_what_it_left_is_thrown_away() -> None:
    with serving(LONG_TEXT, patience_s=SOON_S) as endpoint, client(endpoint, SCRAPE) as slow:
        assert slow.recv(1)
        wait_for(lambda: not can_say(slow, b"G"), every_s=SOON_S / 10)
        assert left_to(slow) < len(LONG_TEXT)


def test_a_request_is_not_kept_beyond_its_bound() -> None:
    with serving() as endpoint, client(endpoint) as chatty:
        wait_for(lambda: not can_say(chatty, b"x" * REQUEST_BYTES))


def test_of_too_many_clients_the_oldest_goes_and_a_scrape_is_answered() -> None:
    with serving() as endpoint, ExitStack() as stack:
        silent = [stack.enter_context(client(endpoint)) for _ in range(CLIENTS + 9)]
        assert scraped(endpoint) == TEXT
        assert not any(left_to(one) for one in silent[:10])
        for one in silent[10:]:
            one.sendall(SCRAPE)
            assert one.recv(1 << 16).endswith(TEXT)


def test_a_request_may_come_in_pieces_and_its_method_must_be_get() -> None:
    with (
        serving() as endpoint,
        client(endpoint, SCRAPE[:9]) as one,
        client(endpoint, b"PUT / HTTP/1.1\r\n") as other,
    ):
        one.sendall(SCRAPE[9:])
        assert one.recv(1 << 16).startswith(b"HTTP/1.1 200 OK\r\n")
        other.sendall(b"\r\n")
        assert other.recv(1 << 16).startswith(b"HTTP/1.1 405 ")


def test_who_is_there_when_the_daemon_ends_is_let_go() -> None:
    with serving() as endpoint:
        silent = client(endpoint)
        assert scraped(endpoint) == TEXT
    with silent:
        assert left_to(silent) == 0


def test_its_end_may_meet_its_thread_wherever_that_is(monkeypatch: pytest.MonkeyPatch) -> None:
    endpoint = Endpoint(LOOPBACK, 0, lambda: TEXT, SOON_S)
    shutdown = socket.socket.shutdown
    with client(endpoint) as cut_off:

        def late(door: socket.socket, how: int) -> None:
            left_to(cut_off)  # for which the thread has to wake up, and sees what it may do
            time.sleep(5 * ROUND_S)
            shutdown(door, how)

        monkeypatch.setattr(socket.socket, "shutdown", late)
        endpoint.close()
