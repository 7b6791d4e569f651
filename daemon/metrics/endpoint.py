"""The address where Prometheus gets the metrics: text that is there already, so a scrape renders nothing.

One thread serves everybody at once, as far as each can take it, and waits for nobody. A connection has a
limit of time for all that it does, and one of bytes for what it says. There are so many at once and no more:
when another comes, the oldest goes. After each round the thread rests, so that whoever floods it with
connections, or with single bytes, takes a few hundredths of a core, and no more.
"""

from __future__ import annotations

import selectors
import signal
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from .exposition import CONTENT_TYPE

PATIENCE_S = 5.0
"""From connecting to the last byte of the answer: half of what Prometheus itself waits by default."""

CLIENTS = 64
"""At once. Two Prometheus that scrape without a pause are two."""

REQUEST_BYTES = 8192
"""The longest request: Prometheus' own has 300 bytes."""

ROUND_S = 0.02
WELCOMES = 8
"""So many new clients a round, 400 a second: the oldest of 64 has 0.16 s before it has to go."""

QUEUE = 128
"""So many more wait in the kernel, 0.3 s at the longest. It turns others away, and they try again later."""

PIECE_BYTES = 1 << 20
"""So much a client and a round: a text of 256 vCPUs, 0.5 MB, goes out at once."""

LEAVE_S = 0.1
"""How long the end of the daemon waits for the end of a round."""

_NO_LINGER = struct.pack("ii", 1, 0)
"""Closed so, what the kernel has not sent yet is thrown away, not kept for a client that does not read."""


@dataclass(slots=True)
class _Client:
    """One connection: what it has said, then what it still gets."""

    socket: socket.socket
    until_s: float
    said: bytearray = field(default_factory=bytearray)
    answer: memoryview | None = None


class Endpoint:
    """Serves what `text` gives as /metrics. Raises OSError if it cannot have that address."""

    def __init__(
        self, address: str, port: int, text: Callable[[], bytes], patience_s: float = PATIENCE_S
    ) -> None:
        self._text, self._patience_s = text, patience_s
        self._door = _door(address, port)
        self._port = int(self._door.getsockname()[1])
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._door, selectors.EVENT_READ)
        self._clients: dict[int, _Client] = {}
        self._open = True
        self._thread = threading.Thread(target=self._serve, name="metrics", daemon=True)
        # A signal that stops the daemon must find no thread that does not block it (service/timer.py).
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        try:
            self._thread.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)

    @property
    def port(self) -> int:
        """Where it listens."""
        return self._port

    def close(self) -> None:
        """No more scrapes. It does not wait for a client that is slow."""
        self._door.shutdown(socket.SHUT_RDWR)  # first: the thread closes it as soon as it may
        self._open = False
        self._thread.join(LEAVE_S)

    def _serve(self) -> None:
        while self._open:
            for key, _ in self._selector.select(self._next_limit_s()):
                if key.fileobj is self._door:
                    self._welcome()
                elif key.fd in self._clients:
                    self._attend(self._clients[key.fd])
            now_s = time.monotonic()
            for client in [one for one in self._clients.values() if one.until_s <= now_s]:
                self._part(client)
            time.sleep(ROUND_S)
        for client in tuple(self._clients.values()):
            self._part(client)
        self._selector.close()
        self._door.close()

    def _next_limit_s(self) -> float | None:
        """How long nobody's time is over: the oldest client comes first, and all have as much."""
        oldest = next(iter(self._clients.values()), None)
        return None if oldest is None else max(0.0, oldest.until_s - time.monotonic())

    def _welcome(self) -> None:
        for _ in range(WELCOMES):
            try:
                accepted, _ = self._door.accept()
            except OSError:
                return  # nobody else waits, it has gone again, or there is no descriptor left for it
            if len(self._clients) == CLIENTS:
                self._part(next(iter(self._clients.values())))
            accepted.setblocking(False)
            self._clients[accepted.fileno()] = _Client(accepted, time.monotonic() + self._patience_s)
            self._selector.register(accepted, selectors.EVENT_READ)

    def _attend(self, client: _Client) -> None:
        """Hear it, or go on answering."""
        try:
            if client.answer is None:
                self._hear(client)
            else:
                client.answer = client.answer[client.socket.send(client.answer[:PIECE_BYTES]) :]
                if not client.answer:
                    self._part(client, in_peace=True)
        except BlockingIOError:
            return
        except OSError:
            self._part(client)

    def _hear(self, client: _Client) -> None:
        said = client.socket.recv(REQUEST_BYTES)
        client.said += said
        if b"\r\n\r\n" in client.said:
            client.answer = memoryview(b"".join(_answer(bytes(client.said), self._text)))
            self._selector.modify(client.socket, selectors.EVENT_WRITE)
        elif not said or len(client.said) > REQUEST_BYTES:
            self._part(client)

    def _part(self, client: _Client, *, in_peace: bool = False) -> None:
        """The connection ends: in peace when all was said."""
        del self._clients[client.socket.fileno()]
        self._selector.unregister(client.socket)
        if not in_peace:
            client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGER)
        client.socket.close()


def _door(address: str, port: int) -> socket.socket:
    door = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
    try:
        door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        door.setblocking(False)
        door.bind((address, port))
        door.listen(QUEUE)
    except BaseException:
        door.close()
        raise
    return door


def _answer(request: bytes, text: Callable[[], bytes]) -> Iterator[bytes]:
    """The metrics, or where they are."""
    method, _, rest = request.partition(b"\r\n")[0].partition(b" ")
    path = rest.partition(b" ")[0].partition(b"?")[0]
    if method != b"GET":
        status, kind, content = (
            "405 Method Not Allowed",
            "text/plain",
            b"dasec: the metrics are to be got (GET)\n",
        )
    elif path != b"/metrics":
        status, kind, content = "404 Not Found", "text/plain", b"dasec: the metrics are at /metrics\n"
    else:
        status, kind, content = "200 OK", CONTENT_TYPE, text()
    head = f"Content-Type: {kind}\r\nContent-Length: {len(content)}\r\nConnection: close"
    yield f"HTTP/1.1 {status}\r\n{head}\r\n\r\n".encode()
    yield content
