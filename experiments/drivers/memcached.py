"""memcached and our open-loop client. Starts a server of its own, or asks one that runs already."""

from __future__ import annotations

import contextlib
import shutil
import socket
from collections.abc import Mapping
from dataclasses import dataclass, replace

from dasec.lab.kit.driver import DRAIN_S, GUEST, Place, Role, WorkKind, WorkOrder
from dasec.lab.kit.load_driver import (
    BACKGROUND,
    NO_REQUESTS_PER_S,
    LoadService,
    ToolRun,
    missing_tool,
    requests,
    tool_command,
)
from dasec.lab.kit.place import LOOPBACK
from dasec.lab.kit.process import Child, free_port
from dasec.lab.kit.scenario import Tenant

from ..places.guest import MOST_CACHED_MIB
from .options import absent, options_of, refusal, whole

OPTIONS = {
    "address": "",
    "memory-mb": "64",
    "connections": "16",
    "keys": "10000",
    "key-bytes": "30",
    "value-bytes": "200",
    "get-ratio": "0.9",
    "background": "0",
    "burst-us": "10000",
    "bursts-per-s": "15",
}
"""`address` HOST:PORT names a server that is not ours. `background` threads burst in a process beside the
server, in the same workload."""

SERVER = ("address", "memory-mb", "background", "burst-us", "bursts-per-s")

MEMCACHED_WORKER = "mc-worker"
"""What memcached calls the threads that serve requests."""

ANSWER_S = 1.0
"""For memcached to say its version, on a busy host."""


@dataclass(frozen=True, slots=True)
class Memcached:
    """`threads` are memcached's workers."""

    name: str = "memcached"
    kind: WorkKind = WorkKind.SERVICE

    def missing(self) -> str | None:
        """Of the client and of a server of our own."""
        return missing_tool() or absent("memcached", "memcached")

    def vcpus(self, order: WorkOrder) -> int:
        options = options_of(order, OPTIONS)
        background = whole(order, "background", options["background"], 0)
        return background + (0 if options["address"] else order.threads)

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
        asked = {name: text for name, text in options.items() if name not in SERVER}
        asked |= {"host": host, "port": str(port), "drain-seconds": f"{DRAIN_S:g}", **requests(order)}
        try:
            if server:
                server.wait_until(lambda: answers(port), f"answers at port {port}")
            command = tool_command(order, "memcached", asked)
            tool = Child.start(order.name, place, command, order.folder / "log", Role.CLIENT)
        except BaseException:
            if server:
                server.kill()
            raise
        return ToolRun(order, tool, server, _beside(order, place, options), is_foreign=server is None)


def _beside(order: WorkOrder, place: Place, options: Mapping[str, str]) -> tuple[ToolRun, ...]:
    """The process of background work in the same workload, if there is any."""
    if options["background"] == "0":
        return ()
    told = {
        "helpers": "0",
        "background": options["background"],
        "background-burst-us": options["burst-us"],
        "background-rate": options["bursts-per-s"],
    }
    name, folder = f"{order.name}-beside", order.folder / "beside"
    mine = replace(order, name=name, folder=folder, rate_per_s=NO_REQUESTS_PER_S, options=told)
    return (LoadService().start(mine, place),)


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
        vcpu_names=(MEMCACHED_WORKER, f"{BACKGROUND}*"),
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
