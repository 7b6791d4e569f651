"""Redis and our open-loop client; while requests are measured it may save itself to disk (BGSAVE)."""

from __future__ import annotations

import contextlib
import shutil
import socket
from dataclasses import dataclass

from dasec.lab.kit.driver import Place, WorkDone, WorkKind, WorkOrder
from dasec.lab.kit.errors import failure
from dasec.lab.kit.load_driver import ToolRun, missing_tool
from dasec.lab.kit.place import LOOPBACK
from dasec.lab.kit.process import Child, free_port

from .options import absent, one_of, options_of, refusal
from .served import BESIDE, BURSTING, KEYED, asked_when_up, background_of, beside, client, keyed

SAVE = "bgsave"
OPTIONS = {**KEYED, **BESIDE, SAVE: "false"}
"""`bgsave`: once, when requests begin."""

MAIN = "redis-server"
"""Its main thread, which serves, and the process that saves."""

ANSWER_S = 2.0
"""For Redis to answer, on a busy host."""

ANSWER_BYTES = 128


@dataclass(slots=True)
class Saving(ToolRun):
    """A Redis that is told to save itself when requests begin."""

    port: int = 0
    _line: socket.socket | None = None

    def await_up(self) -> None:
        """With a connection: whoever begins many has no time to make one."""
        ToolRun.await_up(self)  # a class with slots is made anew: super() has the old one
        self._line = socket.create_connection((LOOPBACK, self.port), ANSWER_S)

    def begin(self, start_ns: int) -> None:
        """Requests, background, and a process that saves; nobody waits for its fork here."""
        ToolRun.begin(self, start_ns)
        assert self._line is not None
        self._line.sendall(b"BGSAVE\r\n")

    def finish(self) -> WorkDone:
        """What was measured, if it did save itself."""
        done = ToolRun.finish(self)
        assert self._line is not None
        said = self._line.recv(ANSWER_BYTES)
        if not said.startswith(b"+Background saving started"):
            words = said.decode(errors="replace").strip() or "no answer"
            raise failure(f"{self.order.name}: BGSAVE: {words}")
        return done

    def stop(self) -> None:
        """All of it."""
        if self._line is not None:
            self._line.close()
        ToolRun.stop(self)


@dataclass(frozen=True, slots=True)
class Redis:
    """One thread serves."""

    name: str = "redis"
    kind: WorkKind = WorkKind.SERVICE
    package: str = "redis-server"
    program: str = MAIN
    vcpu_names: tuple[str, ...] = (MAIN, BURSTING)
    is_exact: bool = True

    def missing(self) -> str | None:
        """Of the client and of a server of our own."""
        return missing_tool() or absent(self.program, self.package)

    def vcpus(self, order: WorkOrder) -> int:
        if order.threads != 1:
            raise refusal(order, "threads", f"must be 1, Redis has no more that serve, got '{order.threads}'")
        return 1 + background_of(order, options_of(order, OPTIONS))

    def critical(self, order: WorkOrder) -> tuple[str, ...]:
        one_of(order, SAVE, options_of(order, OPTIONS)[SAVE], ("true", "false"))
        return (MAIN,)

    def start(self, order: WorkOrder, place: Place) -> ToolRun:
        options, port = options_of(order, OPTIONS), free_port()
        saves = one_of(order, SAVE, options[SAVE], ("true", "false")) == "true"
        order.folder.mkdir(parents=True)
        server = _server(self.program, order, place, port)

        def ask() -> ToolRun:
            asked = {**keyed(options), "host": LOOPBACK, "port": str(port)}
            tool, besides = client(order, place, self.name, asked), beside(order, place, options)
            if saves:
                return Saving(order, tool, server, besides, port=port)
            return ToolRun(order, tool, server, besides)

        return asked_when_up(server, lambda: told(port, b"PING\r\n") == b"+PONG\r\n", port, ask)


def _server(program: str, order: WorkOrder, place: Place, port: int) -> Child:
    command = [shutil.which(program) or program, "--bind", place.listens_at, "--port", str(port)]
    command += ["--protected-mode", "no", "--save", "", "--appendonly", "no", "--dir", str(order.folder)]
    return Child.start(order.name, place, command, order.folder / "server.log", serves=(port,))


def told(port: int, line: bytes) -> bytes:
    """What Redis says to that; nothing if it is not there."""
    with contextlib.suppress(OSError), socket.create_connection((LOOPBACK, port), ANSWER_S) as connection:
        connection.sendall(line)
        return connection.recv(ANSWER_BYTES)
    return b""
