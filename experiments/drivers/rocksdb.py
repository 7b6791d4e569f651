"""Debian's RocksDB in a server of ours (experiments/services) and our open-loop client, which reads and
writes values by their keys. Beside requests it flushes memtables and compacts files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dasec.lab.kit.driver import Place, WorkKind, WorkOrder
from dasec.lab.kit.load_driver import ToolRun, missing_tool
from dasec.lab.kit.place import LOOPBACK
from dasec.lab.kit.process import Child, free_port

from .keeping import KEEPING, Keeping, Tasks, is_kept
from .options import options_of, whole
from .redis import told
from .served import BESIDE, BURSTING, KEYED, asked_when_up, background_of, beside, client, keyed
from .services import found

MEMTABLE = "memtable-kb"
OPTIONS = {**KEYED, **BESIDE, MEMTABLE: "256", KEEPING: "false"}
"""`memtable-kb`: of so much that was written a file is made, and of two files and those below them others.
`housekeeping`: a run without either since requests began has failed."""

PING = b"*1\r\n$4\r\nPING\r\n"

SERVING, BEHIND = "serve-*", ("rocksdb:low", "rocksdb:high")
"""Its low thread compacts, the high one flushes."""

TASKS: Tasks = {"flush": ('"event": "flush_finished"',), "compaction": ('"event": "compaction_finished"',)}
"""As its log has them. A file that moves to another level as it is is no compaction."""


@dataclass(frozen=True, slots=True)
class RocksDb:
    """`threads` are those that serve."""

    name: str = "rocksdb"
    kind: WorkKind = WorkKind.SERVICE
    package: str = "librocksdb-dev"
    program: str = "dasec-rocksdb"
    vcpu_names: tuple[str, ...] = (SERVING, *BEHIND, BURSTING)
    is_exact: bool = True

    def missing(self) -> str | None:
        """Of the client, and of the server, which is compiled once."""
        made = missing_tool()
        if made is None and found(self.program) is None:
            return f"{self.program}: not found: make -C experiments/services {self.name} ({self.package})"
        return made

    def vcpus(self, order: WorkOrder) -> int:
        return order.threads + len(BEHIND) + background_of(order, options_of(order, OPTIONS))

    def critical(self, order: WorkOrder) -> tuple[str, ...]:
        is_kept(order, OPTIONS)
        _memtable_bytes(order, options_of(order, OPTIONS))
        return (SERVING,)

    def start(self, order: WorkOrder, place: Place) -> ToolRun:
        options, port = options_of(order, OPTIONS), free_port()
        tasks = TASKS if is_kept(order, OPTIONS) else {}
        data, bytes_wanted = order.folder / "data", _memtable_bytes(order, options)
        order.folder.mkdir(parents=True)
        words = (place.listens_at, str(port), str(order.threads), str(data), str(bytes_wanted))
        command = (str(found(self.program) or self.program), *words)
        server = Child.start(order.name, place, command, order.folder / "server.log", serves=(port,))

        def ask() -> ToolRun:
            asked = {**keyed(options), "host": LOOPBACK, "port": str(port)}
            tool, besides = client(order, place, "redis", asked), beside(order, place, options)
            return Keeping(order, tool, server, besides, data=data, diary=data / "LOG", tasks=tasks)

        return asked_when_up(server, lambda: told(port, PING) == b"+PONG\r\n", port, ask)


def _memtable_bytes(order: WorkOrder, options: Mapping[str, str]) -> int:
    return 1024 * whole(order, MEMTABLE, options[MEMTABLE], 64)
