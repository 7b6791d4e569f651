"""`dasec fleet extender`: a scheduler extender of Kubernetes, which filters and ranks nodes for a pod.

The contract is k8s.io/kube-scheduler/extender/v1: ExtenderArgs in; ExtenderFilterResult or a HostPriorityList
out. It binds nothing and needs neither root nor the cluster's API. Where Prometheus does not answer, every
node may have the pod and none is better: it never keeps a pod waiting for our sake.
"""

from __future__ import annotations

import json
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

from ..errors import ExitStatus, Refusal
from ..placement import FleetHost, Resident
from ..placement.fleet import without_port
from ..placement.nodes import choose, score
from ..placement.pod import BadPod, coming
from .fleet_numbers import read
from .prometheus import checked

PATIENCE_S = 5.0
"""For a request as a whole: what kube-scheduler waits by default (DefaultExtenderTimeout)."""

CLIENTS = 64
"""At once; kube-scheduler has one pod at a time in its scheduling cycle, so it is one client."""

MOST_BYTES = 1 << 26
"""64 MB: 5 000 whole nodes. With nodeCacheCapable there are only names."""

LENGTH_DIGITS = 19
"""Those of 2^63; int() refuses some thousands."""

FILTER, PRIORITIZE, ALIVE, READY = "/filter", "/prioritize", "/healthz", "/readyz"


Connection = socket.socket | tuple[bytes, socket.socket]
"""As socketserver types it; with TCP it is a socket."""


class ExtenderWanted(NamedTuple):
    """The command's arguments."""

    url: str
    address: str
    port: int
    every_s: float
    timeout_s: float


@dataclass
class KnownFleet:
    """The fleet as it was lately: asked again by the first request after `every_s`, while others go by what
    there is. `ill`: why there is nothing."""

    ask: Callable[[], Mapping[str, FleetHost]]
    every_s: float
    hosts: Mapping[str, FleetHost] = field(default_factory=dict)
    ill: str = "not asked yet"
    _due_s: float = 0.0
    _asking: threading.Lock = field(default_factory=threading.Lock)

    def now(self) -> Mapping[str, FleetHost]:
        """By the name of the node; nothing where Prometheus is ill."""
        if time.monotonic() >= self._due_s and self._asking.acquire(blocking=False):
            try:
                self.hosts, self.ill = self.ask(), ""
            except Refusal as refusal:
                self.hosts, self.ill = {}, " ".join(refusal.lines)
            finally:
                self._due_s = time.monotonic() + self.every_s
                self._asking.release()
        return self.hosts


class NodeQuestion(NamedTuple):
    """ExtenderArgs. `whole`: the nodes themselves, where not only their names were sent."""

    coming: Resident
    nodes: Sequence[str]
    whole: Mapping[str, object] | None


def question(body: bytes) -> NodeQuestion:
    """Raises BadPod."""
    try:
        told = {name.lower(): value for name, value in json.loads(body).items()}
        nodes: Any = told.get("nodes")
        names: Any = told.get("nodenames")
        whole = None if nodes is None else {each["metadata"]["name"]: each for each in nodes["items"]}
        listed = list(names) if whole is None else list(whole)
        if not all(isinstance(name, str) for name in listed):
            raise TypeError("a name of a node is no text")
        return NodeQuestion(coming(told["pod"]), listed, whole)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        if isinstance(error, BadPod):
            raise
        raise BadPod(f"no ExtenderArgs: {type(error).__name__}: {error}") from error


def filtered(asked: NodeQuestion, hosts: Mapping[str, FleetHost]) -> Mapping[str, object]:
    """ExtenderFilterResult."""
    found = choose(asked.nodes, hosts, asked.coming)
    kept = [*found.nodes]
    nodes = None if asked.whole is None else {"items": [asked.whole[name] for name in kept]}
    names = kept if asked.whole is None else None
    return {"Nodes": nodes, "NodeNames": names, "FailedNodes": dict(found.failed), "Error": ""}


def ranked(asked: NodeQuestion, hosts: Mapping[str, FleetHost]) -> Sequence[Mapping[str, object]]:
    """HostPriorityList."""
    return [{"Host": name, "Score": score(name, hosts, asked.coming)} for name in asked.nodes]


ANSWERS = {FILTER: filtered, PRIORITIZE: ranked}


class ExtenderServer(ThreadingHTTPServer):
    """Listens. Raises OSError if it cannot have that address."""

    daemon_threads = True

    def __init__(self, told: ExtenderWanted) -> None:
        self.address_family = socket.AF_INET6 if ":" in told.address else socket.AF_INET
        self.known = KnownFleet(lambda: _by_node(told), told.every_s)
        self._room = threading.BoundedSemaphore(CLIENTS)
        super().__init__((told.address, told.port), ExtenderHandler)

    def process_request(self, request: Connection, client_address: object) -> None:
        """On a thread of its own, if there is room for one more."""
        if not self._room.acquire(blocking=False):
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except RuntimeError:  # no thread can be started: a limit of pids
            self.shutdown_request(request)
            self._room.release()

    def process_request_thread(self, request: Connection, client_address: object) -> None:
        """Whatever it does, it is over in time."""
        end = threading.Timer(PATIENCE_S, _cut, (request,))
        end.daemon = True
        try:
            end.start()
            super().process_request_thread(request, client_address)
        except RuntimeError:  # as above; those of a request end in handle_error
            self.shutdown_request(request)
        finally:
            end.cancel()
            self._room.release()

    def handle_error(self, request: Connection, client_address: object) -> None:
        """A client that went away is no event."""


def _cut(connection: Connection) -> None:
    assert isinstance(connection, socket.socket), "TCP"
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)  # wakes whoever reads from it, which closing does not


class ExtenderHandler(BaseHTTPRequestHandler):
    """One request."""

    server: ExtenderServer

    def do_GET(self) -> None:
        """Is it alive, and does it know a fleet?"""
        if self.path == ALIVE:
            self._say(200, "ok\n")
        elif self.path == READY:
            self.server.known.now()
            ill = self.server.known.ill
            self._say(503 if ill else 200, f"{ill or 'ok'}\n")
        else:
            self._say(404, f"there are {FILTER} and {PRIORITIZE} (POST), {ALIVE} and {READY} (GET)\n")

    def do_POST(self) -> None:
        """The two verbs."""
        answer = ANSWERS.get(self.path)
        length = self.headers.get("Content-Length", "")
        if answer is None:
            self._say(404, f"there are {FILTER} and {PRIORITIZE}\n")
        elif not (length.isascii() and length.isdigit()):
            self._say(411, "Content-Length is missing\n")
        elif len(length) > LENGTH_DIGITS or int(length) > MOST_BYTES:
            self._say(413, f"more than {MOST_BYTES} bytes: set nodeCacheCapable\n")
        else:
            try:
                asked = question(self.rfile.read(int(length)))
            except BadPod as bad:
                self._say(400, f"{bad}\n")
                return
            self._say(200, json.dumps(answer(asked, self.server.known.now())), "application/json")

    def _say(self, status: int, text: str, kind: str = "text/plain") -> None:
        content = text.encode("utf-8", "backslashreplace")
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - as the base class has it
        """Nothing: a line a pod helps nobody."""


def serve(told: ExtenderWanted, say: Callable[[str], None]) -> None:
    """Until a signal. Refuses (status 2) a URL that is none, and an address that it cannot have (3)."""
    checked(told.url)
    try:
        serving = ExtenderServer(told)
    except OSError as error:
        where = f"--listen: {told.address}:{told.port}"
        raise Refusal(ExitStatus.HOST, f"{where}: {error.strerror or error}: take another") from error
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: sys.exit(ExitStatus.DONE))
    with serving:
        say(f"extender: {FILTER} and {PRIORITIZE} at {told.address}:{serving.server_address[1]}")
        serving.serve_forever()


def _by_node(told: ExtenderWanted) -> Mapping[str, FleetHost]:
    fleet = read(told.url, told.timeout_s, (), ())
    return {without_port(host.name): host for host in fleet.hosts}
