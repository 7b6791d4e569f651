"""memcached and our open-loop client. Starts a server of its own, or asks one that runs already."""

from __future__ import annotations

import contextlib
import shutil
import socket
from dataclasses import dataclass

from dasec.lab.kit.driver import GUEST, Place, WorkKind, WorkOrder
from dasec.lab.kit.load_driver import ToolRun, missing_tool
from dasec.lab.kit.place import LOOPBACK
from dasec.lab.kit.process import Child, free_port
from dasec.lab.kit.scenario import Tenant

from .options import absent, options_of, refusal, whole
from .served import BESIDE, BURSTING, KEYED, asked_when_up, background_of, beside, client, keyed

MOST_CACHED_MIB = 192
"""In a guest (experiments/places/guest.py): its image lies in memory twice while it boots, 12 MB each, and
the kernel has its own; the rest of 320 is for memcached."""

OPTIONS = {**KEYED, **BESIDE, "address": "", "memory-mb": "64"}
"""`address` HOST:PORT names a server that is not ours."""

MEMCACHED_WORKER = "mc-worker"
"""What memcached calls the threads that serve requests."""

ANSWER_S = 1.0
"""For memcached to say its version, on a busy host."""


@dataclass(frozen=True, slots=True)
class Memcached:
    """`threads` are memcached's workers."""

    name: str = "memcached"
    kind: WorkKind = WorkKind.SERVICE
    package: str = "memcached"
    program: str = "memcached"
    vcpu_names: tuple[str, ...] = (MEMCACHED_WORKER, BURSTING)
    is_exact: bool = True

    def missing(self) -> str | None:
        """Of the client and of a server of our own."""
        return missing_tool() or absent(self.program, self.package)

    def vcpus(self, order: WorkOrder) -> int:
        options = options_of(order, OPTIONS)
        return background_of(order, options) + (0 if options["address"] else order.threads)

    def critical(self, order: WorkOrder) -> tuple[str, ...]:
        return () if options_of(order, OPTIONS)["address"] else (MEMCACHED_WORKER,)

    def start(self, order: WorkOrder, place: Place) -> ToolRun:
        options = options_of(order, OPTIONS)
        memory = whole(order, "memory-mb", options["memory-mb"])
        if place.name == GUEST and memory > MOST_CACHED_MIB:
            raise refusal(order, "memory-mb", f"must be at most {MOST_CACHED_MIB} in a guest, got {memory}")
        host, port = _address(order, options["address"])
        order.folder.mkdir(parents=True)
        server = None if options["address"] else _server(order, place, port, memory)

        def ask() -> ToolRun:
            asked = {**keyed(options), "host": host, "port": str(port)}
            tool = client(order, place, self.name, asked)
            return ToolRun(order, tool, server, beside(order, place, options), is_foreign=server is None)

        return asked_when_up(server, lambda: answers(port), port, ask) if server else ask()


def beside_bursts(name: str, rate_per_s: float, background: int, bursts_per_s: float) -> Tenant:
    """A memcached with two workers and this background, as a workload."""
    options = {"background": str(background), "bursts-per-s": f"{bursts_per_s:g}"}
    return Tenant(
        name,
        Memcached(),
        2 + background,
        rate_per_s,
        tuple(options.items()),
        (MEMCACHED_WORKER,),
        threads=2,
        vcpu_names=(MEMCACHED_WORKER, BURSTING),
        has_emulator=True,
    )


def _address(order: WorkOrder, address: str) -> tuple[str, int]:
    if not address:
        return LOOPBACK, free_port()
    host, colon, port = address.rpartition(":")
    if not colon or not host:
        raise refusal(order, "address", f"must be HOST:PORT, got '{address}'")
    return host, whole(order, "address", port)


def _server(order: WorkOrder, place: Place, port: int, memory_mb: int) -> Child:
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
