"""TailBench and TailBench++, from an installation of the user's at TAILBENCH_DIR.

Each instance gets a folder of its own with links to everything in the application's, because all write the
same file to where they run. Traps, and where they come from: drivers/README.md. Behind the gate
(experiments/services/gate.c) it has loaded its data before it is told when requests begin.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from dasec.lab.kit.driver import Place, Role, WorkKind, WorkOrder
from dasec.lab.kit.errors import failure
from dasec.lab.kit.process import Child, free_port, held, within

from .lats import FORMATS
from .options import one_of, options_of, refusal, whole
from .served import BESIDE, BURSTING, background_of, beside
from .services import BUILT
from .tailbench_apps import APPLICATIONS
from .tailbench_run import Asked, Serving

ROOT = "TAILBENCH_DIR"
INPUTS = "tailbench.inputs"
"""Where an installation has them that does not say."""

GATE = "dasec-gate.so"
GATE_HERE = "DASEC_GATE"
"""The variable that says where the gate is, if not where it is made."""

OPTIONS = {
    **BESIDE,
    "mode": "integrated",
    "format": "v0.9",
    "load-s": "5",
    "client-threads": "1",
    "gate": "false",
}
"""`load-s`: how long the application loads its data after its client has come, at most about. `gate`: it
loads before it is told when requests begin."""


def root_folder(environment: Mapping[str, str] = os.environ) -> Path | None:
    """Where the installation is."""
    named = environment.get(ROOT)
    return Path(named) if named else None


def data_folder(root: Path) -> Path:
    """Where its inputs are: DATA_ROOT in the installation's configs.sh."""
    configs = root / "configs.sh"
    text = configs.read_text(encoding="utf-8", errors="replace") if configs.exists() else ""
    told = re.findall(r"^\s*(?:export\s+)?DATA_ROOT=[\"']?([^\s\"'#]+)", text, re.MULTILINE)
    return Path(told[-1]) if told else root / INPUTS


def gate(environment: Mapping[str, str] = os.environ) -> Path:
    """What is preloaded."""
    return Path(environment.get(GATE_HERE) or BUILT / GATE)


@dataclass(frozen=True, slots=True)
class TailBench:
    """One of its applications; `threads` are those that serve; others of the same name wait."""

    name: str
    application: str
    kind: WorkKind = WorkKind.SERVICE
    package: str = "gcc"
    program: str = GATE
    is_exact: bool = False

    @property
    def vcpu_names(self) -> tuple[str, ...]:
        return (APPLICATIONS[self.application].thread_names, BURSTING)

    def missing(self) -> str | None:
        root, application = root_folder(), APPLICATIONS[self.application]
        if root is None:
            return f"{ROOT}: not set: name the folder of an installation of TailBench"
        binary = root / application.folder / application.integrated
        networked = root / application.folder / application.server
        if not os.access(binary, os.X_OK) and not os.access(networked, os.X_OK):
            return f"{binary}: is not there: build {self.application} in {ROOT}"
        return None

    def vcpus(self, order: WorkOrder) -> int:
        return order.threads + background_of(order, options_of(order, OPTIONS))

    def critical(self, order: WorkOrder) -> tuple[str, ...]:
        """All its threads have the process's name, so there is something to tell only beside others."""
        asked = self._asked(order)
        return self.vcpu_names[:1] if asked.options["background"] != "0" else ()

    def start(self, order: WorkOrder, place: Place) -> Serving:
        asked = self._asked(order)
        root, port = root_folder(), free_port()
        if root is None:
            raise failure(f"{order.name}: {ROOT}: not set")
        application = asked.application
        needed = (application.server, application.client) if asked.networked else (application.integrated,)
        for binary in needed:
            if not os.access(root / application.folder / binary, os.X_OK):
                raise failure(f"{order.name}: {root / application.folder / binary}: is not there")
        link_folder(root / application.folder, asked.work)
        arguments, variables = application.filled(order.threads, data_folder(root))
        environment = variables | asked.variables(port)
        if asked.networked:
            return _networked(asked, place, arguments, environment, port)
        return _integrated(asked, place, arguments, environment)

    def _asked(self, order: WorkOrder) -> Asked:
        options = options_of(order, OPTIONS)
        if order.rate_per_s <= 0:
            raise refusal(order, "rate", "must be above 0: TailBench has no other load")
        background_of(order, options)
        asked = Asked(
            order,
            options,
            APPLICATIONS[self.application],
            one_of(order, "mode", options["mode"], ("integrated", "networked")) == "networked",
            FORMATS[one_of(order, "format", options["format"], tuple(FORMATS))],
            whole(order, "load-s", options["load-s"], 0),
            whole(order, "client-threads", options["client-threads"]),
            one_of(order, "gate", options["gate"], ("true", "false")) == "true",
        )
        if asked.gated and asked.networked:
            raise refusal(
                order, "gate", "is of mode integrated: a networked server loads when its client comes"
            )
        return asked


def link_folder(source: Path, work: Path) -> None:
    """A folder with links to all that is in the application's, apart from an older run's results."""
    work.mkdir(parents=True)
    for entry in source.iterdir():
        if not re.fullmatch(r"lats.*\.bin", entry.name):
            (work / entry.name).symlink_to(entry.resolve())


def _integrated(
    asked: Asked, place: Place, arguments: tuple[str, ...], environment: Mapping[str, str]
) -> Serving:
    order = asked.order
    if asked.gated:
        if not gate().exists():
            raise failure(f"{order.name}: {gate()}: not found: make -C experiments/services gate")
        environment = {**environment, "LD_PRELOAD": str(gate()), "DASEC_GATE_READY": str(asked.ready)}
    program = within(asked.work, environment, (f"./{asked.application.integrated}", *arguments))
    command = program if asked.gated else held(program)
    writer = Child.start(order.name, place, command, order.folder / "log")
    return Serving(asked, writer, beside=beside(order, place, asked.options))


def _networked(
    asked: Asked, place: Place, arguments: tuple[str, ...], environment: Mapping[str, str], port: int
) -> Serving:
    order, application = asked.order, asked.application
    program = within(asked.work, environment, (f"./{application.server}", *arguments))
    server = Child.start(order.name, place, program, order.folder / "server.log")
    try:
        server.wait_until(lambda: is_listened_at(port), f"listens at port {port}")
        command = held(within(asked.work, environment, (f"./{application.client}",)))
        client = Child.start(order.name, place, command, order.folder / "log", Role.CLIENT)
    except BaseException:
        server.kill()
        raise
    return Serving(asked, client, server, beside(order, place, asked.options))


LISTEN = "0A"
"""State of a socket in /proc/net/tcp (include/net/tcp_states.h)."""


def is_listened_at(port: int, proc: Path = Path("/proc")) -> bool:
    """Without connecting: v0.9 takes the first connections for its clients, and no more."""
    for name in ("tcp", "tcp6"):
        table = proc / "net" / name
        lines = table.read_text(encoding="ascii").splitlines()[1:] if table.exists() else []
        for words in map(str.split, lines):
            if words[3] == LISTEN and int(words[1].rpartition(":")[2], 16) == port:
                return True
    return False
