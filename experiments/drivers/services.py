"""Web services of our own source (experiments/services) with a garbage collector, and our open-loop client.

Go's threads serve and collect in turn; Java has threads of its own that collect and compile."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from dasec.lab.kit.driver import Place, WorkKind, WorkOrder
from dasec.lab.kit.load_driver import ToolRun, missing_tool
from dasec.lab.kit.process import Child, free_port

from .options import options_of, whole
from .served import BESIDE, BURSTING, WEB, asked_when_up, background_of, beside, listens, web_client

BUILT = Path(__file__).resolve().parents[1] / "services/build"
"""Of a checkout; elsewhere they are in PATH."""

ENTRIES = {"entries": "20000", "picked": "60"}
"""What a service keeps, which its collector looks through, and how many of them a request picks."""

SERVING, DISPATCHER = "serve-*", "HTTP-Dispatcher"
STOPPING = ("GC Thread#*", "VM Thread")
"""While they collect, nobody serves."""
BEHIND = ("G1 Conc#*", "C1 CompilerThre", "C2 CompilerThre")
"""They mark and compile beside requests."""

COLLECTORS = 2
JAVA_OWN = 1 + COLLECTORS + 1 + len(BEHIND)
"""The dispatcher, those that stop the others, and those behind."""

JAVA = (
    *("-XX:+UseG1GC", f"-XX:ParallelGCThreads={COLLECTORS}", "-XX:ConcGCThreads=1", "-XX:CICompilerCount=2"),
    *("-XX:-UseDynamicNumberOfGCThreads", "-XX:-UseDynamicNumberOfCompilerThreads", "-XX:-UsePerfData"),
    *("-Dsun.net.httpserver.nodelay=true",),
)
"""As many threads as are written here, from the beginning; answers leave at once."""

MODULE = "dasec.service/dasec.service.Service"


def go_words(order: WorkOrder, options: Mapping[str, str], address: str, port: int) -> tuple[str, ...]:
    """What follows the program's name."""
    return (f"{address}:{port}", str(order.threads), options["entries"], options["picked"])


def java_words(order: WorkOrder, options: Mapping[str, str], address: str, port: int) -> tuple[str, ...]:
    """The runtime's words, and then the service's."""
    heap = options["heap-mb"]
    own = (address, str(port), str(order.threads), options["entries"], options["picked"], options["warm"])
    return (*JAVA, f"-Xms{heap}m", f"-Xmx{heap}m", "-m", MODULE, *own)


@dataclass(frozen=True, slots=True)
class OwnService:
    """`threads` are those that serve."""

    name: str
    program: str
    package: str
    """That compiles it."""
    vcpu_names: tuple[str, ...]
    awaited: tuple[str, ...]
    words: Callable[[WorkOrder, Mapping[str, str], str, int], tuple[str, ...]]
    more: tuple[tuple[str, str], ...] = ()
    """Options that no other has."""
    own_threads: int = 0
    """vCPUs beside those that serve."""
    is_exact: bool = True
    kind: WorkKind = WorkKind.SERVICE

    def missing(self) -> str | None:
        """Of the client, and of the service, which is compiled once."""
        made = missing_tool()
        if made is None and found(self.program) is None:
            return f"{self.program}: not found: make -C experiments/services {self.name} ({self.package})"
        return made

    def vcpus(self, order: WorkOrder) -> int:
        return self.own_threads + order.threads + background_of(order, self._options(order))

    def critical(self, order: WorkOrder) -> tuple[str, ...]:
        options = self._options(order)
        for name in (*ENTRIES, *dict(self.more)):
            whole(order, name, options[name])
        return self.awaited

    def start(self, order: WorkOrder, place: Place) -> ToolRun:
        options, port = self._options(order), free_port()
        order.folder.mkdir(parents=True)
        words = self.words(order, options, place.listens_at, port)
        command = (str(found(self.program) or self.program), *words)
        server = Child.start(order.name, place, command, order.folder / "server.log", serves=(port,))

        def ask() -> ToolRun:
            asked = web_client(order, place, port, options["connections"], options["keys"])
            return ToolRun(order, asked, server, beside(order, place, options))

        return asked_when_up(server, lambda: listens(port), port, ask)

    def _options(self, order: WorkOrder) -> dict[str, str]:
        return options_of(order, {**BESIDE, **WEB, **ENTRIES, **dict(self.more)})


def found(program: str) -> Path | None:
    """Of this checkout, or in PATH."""
    path = shutil.which(program, path=f"{BUILT}:{os.environ.get('PATH', os.defpath)}")
    return Path(path) if path else None


GO_PROGRAM, JAVA_PROGRAM = "dasec-go", "dasec-java"

OWN_SERVICES = (
    # All of Go's threads have the program's name, and each of them serves, marks and waits in turn. The
    # runtime makes more of them when it wants to.
    OwnService(
        name="go",
        program=GO_PROGRAM,
        package="golang-go",
        vcpu_names=(GO_PROGRAM, BURSTING),
        awaited=(GO_PROGRAM,),
        words=go_words,
        is_exact=False,
    ),
    OwnService(
        name="java",
        program=JAVA_PROGRAM,
        package="default-jdk-headless",
        vcpu_names=(SERVING, DISPATCHER, *STOPPING, *BEHIND, BURSTING),
        awaited=(SERVING, DISPATCHER, *STOPPING),
        words=java_words,
        more=(("heap-mb", "32"), ("warm", "300")),
        own_threads=JAVA_OWN,
    ),
)
