"""memcached and our open-loop client. Starts a server of its own, or asks one that runs already."""

from __future__ import annotations

import contextlib
import shutil
import socket
from dataclasses import dataclass

from dasec.lab.kit.process import free_port
from dasec.lab.kit.scenario import MEMCACHED_WORKER

from ..places.guest import MOST_CACHED_MIB
from ..places.places import LOOPBACK
from .child import Child
from .driver import GUEST, Kind, Order, Place, Role
from .loadtool import Measured, missing_tool, requests, tool_command
from .options import absent, options_of, refusal, whole

OPTIONS = {
    "address": "",
    "memory-mb": "64",
    "connections": "16",
    "keys": "10000",
    "key-bytes": "30",
    "value-bytes": "200",
    "get-ratio": "0.9",
}
"""As the demo has it (dasec.lab.kit.scenario); `address` HOST:PORT names a server that is not ours."""

SERVER = ("address", "memory-mb")

ANSWER_S = 1.0
"""For memcached to say its version, on a busy host."""


@dataclass(frozen=True, slots=True)
class Memcached:
    """`threads` are memcached's workers."""

    name: str = "memcached"
    kind: Kind = Kind.SERVICE

    def missing(self) -> str | None:
        """Of the client and of a server of our own."""
        return missing_tool() or absent("memcached", "memcached")

    def vcpus(self, order: Order) -> int:
        return 0 if options_of(order, OPTIONS)["address"] else order.threads

    def critical(self, order: Order) -> tuple[str, ...]:
        return () if options_of(order, OPTIONS)["address"] else (MEMCACHED_WORKER,)

    def start(self, order: Order, place: Place) -> Measured:
        options = options_of(order, OPTIONS)
        memory = whole(order, "memory-mb", options["memory-mb"])
        if place.name == GUEST and memory > MOST_CACHED_MIB:
            raise refusal(order, "memory-mb", f"must be at most {MOST_CACHED_MIB} in a guest, got {memory}")
        host, port = _address(order, options["address"])
        order.folder.mkdir(parents=True)
        server = None if options["address"] else _server(order, place, port, memory)
        asked = {name: text for name, text in options.items() if name not in SERVER}
        asked |= {"host": host, "port": str(port), **requests(order)}
        try:
            if server:
                server.wait_until(lambda: answers(port), f"answers at port {port}")
            command = tool_command(order, "memcached", asked)
            tool = Child.start(order.name, place, command, order.folder / "log", Role.CLIENT)
        except BaseException:
            if server:
                server.kill()
            raise
        running = Measured(order, tool, server, foreign=server is None)
        running.await_ready()
        return running


def _address(order: Order, address: str) -> tuple[str, int]:
    if not address:
        return LOOPBACK, free_port()
    host, colon, port = address.rpartition(":")
    if not colon or not host:
        raise refusal(order, "address", f"must be HOST:PORT, got '{address}'")
    return host, whole(order, "address", port)


def _server(order: Order, place: Place, port: int, memory_mb: int) -> Child:
    program = shutil.which("memcached") or "memcached"
    command = [program, "-u", "nobody", "-l", place.listens_at, "-p", str(port), "-U", "0"]
    command += ["-t", str(order.threads), "-m", str(memory_mb)]
    return Child.start(order.name, place, command, order.folder / "server.log", serves=(port,))


def answers(port: int) -> bool:
    """Is memcached there? QEMU takes connections for a guest that does not take them yet."""
    with contextlib.suppress(OSError), socket.create_connection((LOOPBACK, port), ANSWER_S) as line:
        line.sendall(b"version\r\n")
        return line.recv(16).startswith(b"VERSION")
    return False
