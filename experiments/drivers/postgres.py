"""Debian's PostgreSQL and our open-loop client, which reads and writes rows by their keys. Beside requests it
writes checkpoints and cleans its table up (autovacuum)."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from dasec.lab.kit.driver import Place, WorkDone, WorkKind, WorkOrder
from dasec.lab.kit.errors import failure
from dasec.lab.kit.load_driver import ToolRun, missing_tool
from dasec.lab.kit.process import Child, free_port

from .options import one_of, options_of
from .served import BESIDE, BURSTING, KEYED, asked_when_up, background_of, beside, client
from .services import found

KEEPING = "housekeeping"
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
CHECKPOINT, CLEANED = "checkpoint starting: wal", ("automatic vacuum of", "automatic analyze of")

NOBODY = ("--reuid=65534", "--regid=65534", "--clear-groups")
PASSING = ("--inh-caps=+dac_override", "--ambient-caps=+dac_override")
"""It refuses to be root, and has to reach a folder that is root's."""

ENDS_S = 5.0
"""For it to leave no shared memory behind."""


@dataclass(slots=True)
class Keeping(ToolRun):
    """A PostgreSQL with a cluster of its own."""

    data: Path = Path()
    is_kept: bool = False
    """Whether it has to write checkpoints and clean up."""
    _before: int = 0

    def begin(self, start_ns: int) -> None:
        """Requests, and background."""
        assert self.server is not None
        self._before = len(_words(self.server.log))
        ToolRun.begin(self, start_ns)  # a class with slots is made anew: super() has the old one

    def finish(self) -> WorkDone:
        """What was measured, if it kept house."""
        done = ToolRun.finish(self)
        assert self.server is not None
        said = _words(self.server.log)[self._before :]
        for what, words in (("checkpoint", (CHECKPOINT,)), ("automatic vacuum or analyze", CLEANED)):
            if self.is_kept and not any(word in said for word in words):
                raise failure(f"{self.order.name}: {KEEPING}: no {what} since requests began")
        return done

    def stop(self) -> None:
        """All of it, and its files."""
        assert self.server is not None
        if self.server.process.poll() is None:
            os.kill(self.server.process.pid, signal.SIGQUIT)  # at once, without a checkpoint
            self.server.wait(ENDS_S)
        ToolRun.stop(self)
        shutil.rmtree(self.data, ignore_errors=True)


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
        one_of(order, KEEPING, options_of(order, OPTIONS)[KEEPING], ("true", "false"))
        return (NAME,)

    def start(self, order: WorkOrder, place: Place) -> ToolRun:
        options, port = options_of(order, OPTIONS), free_port()
        is_kept = one_of(order, KEEPING, options[KEEPING], ("true", "false")) == "true"
        order.folder.mkdir(parents=True)
        data = order.folder / "data"
        server = _server(self.program, order, place, data, port)

        def ask() -> ToolRun:
            asked = {name: options[name] for name in KEYED if name in options}
            asked |= {"connections": str(order.threads), "port": str(port)}
            tool, besides = client(order, place, self.name, asked), beside(order, place, options)
            return Keeping(order, tool, server, besides, data=data, is_kept=is_kept)

        return asked_when_up(server, lambda: READY in _words(server.log), port, ask)


def _server(program: str, order: WorkOrder, place: Place, data: Path, port: int) -> Child:
    words = (str(found(program) or program), str(data), "-p", str(port), "-h", place.listens_at)
    settings = (word for name, text in SETTINGS.items() for word in ("-c", f"{name}={text}"))
    another = (shutil.which("setpriv") or "setpriv", *NOBODY, *PASSING) if os.geteuid() == 0 else ()
    command = (*another, *words, *settings)
    return Child.start(order.name, place, command, order.folder / "server.log", serves=(port,))


def _words(log: Path) -> str:
    return log.read_text(encoding="utf-8", errors="replace")
