"""The address where Prometheus gets the metrics: text that is there already, so a scrape renders nothing.

One thread and one connection at a time, each with a time limit: nothing here can grow.
"""

from __future__ import annotations

import signal
import socket
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler
from socketserver import TCPServer

from .exposition import CONTENT_TYPE

PATIENCE_S = 2.0
"""How long a client may be silent: Prometheus' own limit for a scrape is 10 s, and others wait meanwhile."""


LEAVE_S = 0.1
"""How long the end of the daemon waits for the end of a scrape."""


class Endpoint:
    """Serves what `text` gives as /metrics. Raises OSError if it cannot have that address."""

    def __init__(self, address: str, port: int, text: Callable[[], bytes]) -> None:
        self._server = _server_class(address)((address, port), _handler_class(text))
        self._open = True
        self._thread = threading.Thread(target=self._serve, name="metrics", daemon=True)
        # A signal that stops the daemon must find no thread that does not block it (pace.py).
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        try:
            self._thread.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self._server.server_address[1])

    def close(self) -> None:
        """No more scrapes. It does not wait for a client that is slow."""
        self._open = False
        self._server.socket.shutdown(socket.SHUT_RDWR)
        self._thread.join(LEAVE_S)
        self._server.server_close()

    def _serve(self) -> None:
        while self._open:
            self._server.handle_request()


def _server_class(address: str) -> type[TCPServer]:
    class Server(TCPServer):
        allow_reuse_address = True
        address_family = socket.AF_INET6 if ":" in address else socket.AF_INET

        def handle_error(self, request: object, client_address: object) -> None:
            """A client that went away is no news."""

    return Server


def _handler_class(text: Callable[[], bytes]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        timeout = PATIENCE_S

        def do_GET(self) -> None:
            """The metrics, or where they are."""
            found = self.path.partition("?")[0] == "/metrics"
            content = text() if found else b"dasec: the metrics are at /metrics\n"
            self.send_response(200 if found else 404)
            self.send_header("Content-Type", CONTENT_TYPE if found else "text/plain")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002
            """No line a scrape."""

    return Handler
