"""Debian's PostgreSQL and our open-loop client, which reads and writes rows by their keys. Beside requests it
writes checkpoints and cleans its table up (autovacuum)."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from dasec.lab.kit.driver import Place, WorkKind, WorkOrder
from dasec.lab.kit.load_driver import ToolRun, missing_tool
from dasec.lab.kit.process import Child, free_port

from .keeping import KEEPING, Keeping, Tasks, is_kept, words
from .options import options_of
from .served import BESIDE, BURSTING, KEYED, asked_when_up, background_of, beside, client
from .services import found

OPTIONS = {
    **{name: text for name, text in KEYED.items() if name != "connections"},
    **BESIDE,
    KEEPING: "false",
}
"""`housekeeping`: a run in which it wrote no checkpoint or cleaned nothing up since requests began has
failed. Each connection has a process, so there are as many as `threads`."""

NAME = "postgres"
"""Of all of its processes."""

OWN_PROCESSES = 5
"""The one that starts the others, and those that write checkpoints, dirty pages and the log and look for
tables to clean up."""

SETTINGS: Mapping[str, str] = {
    "unix_socket_directories": "",
    # Counted guests have no /dev/shm.
    "dynamic_shared_memory_type": "mmap",
    "shared_buffers": "16MB",
    "max_logical_replication_workers": "0",
    # A checkpoint for each megabyte of its log and a look for tables each second: the least that it takes.
    "max_wal_size": "2MB",
    "min_wal_size": "2MB",
    "autovacuum_naptime": "1s",
    "log_checkpoints": "on",
    "log_autovacuum_min_duration": "0",
}

READY = "database system is ready to accept connections"
TASKS: Tasks = {
    "checkpoint": ("checkpoint starting: wal",),
    "automatic vacuum or analyze": ("automatic vacuum of", "automatic analyze of"),
}

NOBODY = ("--reuid=65534", "--regid=65534", "--clear-groups")
PASSING = ("--inh-caps=+dac_override", "--ambient-caps=+dac_override")
"""It refuses to be root, and has to reach a folder that is root's."""

ENDS_S = 5.0
"""For it to leave no shared memory behind."""


@dataclass(slots=True)
class Cluster(Keeping):
    """A PostgreSQL with a cluster of its own."""

    def stop(self) -> None:
        """All of it, and its files."""
        assert self.server is not None
        if self.server.process.poll() is None:
            os.kill(self.server.process.pid, signal.SIGQUIT)  # at once, without a checkpoint
            self.server.wait(ENDS_S)
        Keeping.stop(self)


@dataclass(frozen=True, slots=True)
class Postgres:
    """`threads` are connections, of which each has a process."""

    name: str = NAME
    kind: WorkKind = WorkKind.SERVICE
    package: str = "postgresql"
    program: str = "dasec-postgres"
    vcpu_names: tuple[str, ...] = (NAME, BURSTING)
    is_exact: bool = False
    """Those that clean up come and go."""

    def missing(self) -> str | None:
        """Of the client, and of a PostgreSQL with a cluster, which is made once."""
        made = missing_tool()
        if made is None and found(self.program) is None:
            return f"{self.program}: not found: make -C experiments/services {self.name} ({self.package})"
        return made

    def vcpus(self, order: WorkOrder) -> int:
        return OWN_PROCESSES + order.threads + background_of(order, options_of(order, OPTIONS))

    def critical(self, order: WorkOrder) -> tuple[str, ...]:
        is_kept(order, OPTIONS)
        return (NAME,)

    def start(self, order: WorkOrder, place: Place) -> ToolRun:
        options, port = options_of(order, OPTIONS), free_port()
        tasks = TASKS if is_kept(order, OPTIONS) else {}
        order.folder.mkdir(parents=True)
        data = order.folder / "data"
        server = _server(self.program, order, place, data, port)

        def ask() -> ToolRun:
            asked = {name: options[name] for name in KEYED if name in options}
            asked |= {"connections": str(order.threads), "port": str(port)}
            tool, besides = client(order, place, self.name, asked), beside(order, place, options)
            return Cluster(order, tool, server, besides, data=data, diary=server.log, tasks=tasks)

        return asked_when_up(server, lambda: READY in words(server.log), port, ask)


def _server(program: str, order: WorkOrder, place: Place, data: Path, port: int) -> Child:
    called = (str(found(program) or program), str(data), "-p", str(port), "-h", place.listens_at)
    settings = (word for name, text in SETTINGS.items() for word in ("-c", f"{name}={text}"))
    another = (shutil.which("setpriv") or "setpriv", *NOBODY, *PASSING) if os.geteuid() == 0 else ()
    command = (*another, *called, *settings)
    return Child.start(order.name, place, command, order.folder / "server.log", serves=(port,))
