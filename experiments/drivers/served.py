"""What servers have in common that our open-loop client asks: who asks, and what works beside them in the
same workload."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Protocol

from dasec.lab.kit.driver import DRAIN_S, Driver, Place, Role, WorkOrder
from dasec.lab.kit.load_driver import (
    BACKGROUND,
    NO_REQUESTS_PER_S,
    LoadService,
    ToolRun,
    requests,
    tool_command,
)
from dasec.lab.kit.place import LOOPBACK
from dasec.lab.kit.process import Child

from .options import whole

KEYED = {
    "connections": "16",
    "keys": "10000",
    "key-bytes": "30",
    "value-bytes": "200",
    "get-ratio": "0.9",
}
"""Options of the client."""

WEB = {"connections": "16", "keys": "1000"}
"""Those of the client of web servers."""

NUMBER_BYTES = 8
"""Of the names of files, which are numbers."""

LISTENS_S = 2.0
"""For a server to take a connection, on a busy host."""

BESIDE = {"background": "0", "burst-us": "10000", "bursts-per-s": "15"}
"""`background` threads burst in a process beside the server, in the same workload."""

BURSTING = f"{BACKGROUND}*"
"""Their names."""


class Server(Driver, Protocol):
    """A driver whose program Debian ships, and some of whose threads are no vCPUs."""

    @property
    def package(self) -> str:
        """Of Debian."""

    @property
    def program(self) -> str:
        """That the package has, or compiles."""

    @property
    def is_exact(self) -> bool:
        """Whether it has all of its vCPUs, and no others, before it begins."""

    @property
    def vcpu_names(self) -> tuple[str, ...]:
        """Of the threads that compete for cores, background included."""


def background_of(order: WorkOrder, options: Mapping[str, str]) -> int:
    """How many threads burst. Refusal if that is no number."""
    return whole(order, "background", options["background"], 0)


def keyed(options: Mapping[str, str]) -> dict[str, str]:
    """Those of the client."""
    return {name: text for name, text in options.items() if name in KEYED}


def beside(order: WorkOrder, place: Place, options: Mapping[str, str]) -> tuple[ToolRun, ...]:
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


def client(order: WorkOrder, place: Place, protocol: str, asked: Mapping[str, str]) -> Child:
    """Whoever asks, by this subcommand of the load tool."""
    told = {**asked, "drain-seconds": f"{DRAIN_S:g}", **requests(order)}
    return Child.start(
        order.name, place, tool_command(order, protocol, told), order.folder / "log", Role.CLIENT
    )


def web_client(order: WorkOrder, place: Place, port: int, connections: str, keys: str) -> Child:
    """Whoever asks for files that are named by their numbers."""
    asked = {"connections": connections, "keys": keys, "key-bytes": str(NUMBER_BYTES)}
    return client(order, place, "http", {**asked, "host": LOOPBACK, "port": str(port)})


def listens(port: int) -> bool:
    """Does somebody take connections there?"""
    with contextlib.suppress(OSError), socket.create_connection((LOOPBACK, port), LISTENS_S):
        return True
    return False


def asked_when_up(server: Child, up: Callable[[], bool], port: int, ask: Callable[[], ToolRun]) -> ToolRun:
    """What `ask` starts once the server answers; if anything fails, the server is ended."""
    try:
        server.wait_until(up, f"answers at port {port}")
        return ask()
    except BaseException:
        server.kill()
        raise
