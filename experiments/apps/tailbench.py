"""TailBench and TailBench++, from an installation of the user's at TAILBENCH_DIR.

Each instance gets a folder of its own with links to everything in the application's, because all write the
same file to where they run. Traps, and where they come from: drivers.md.
"""

from __future__ import annotations

import math
import os
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from dasec.demo.process import free_port, last_line
from dasec.load import latencies

from .child import Child, failure, held, within
from .driver import Kind, Order, Outcome, Place, Role
from .lats import FORMATS, Format, Requests, read, write
from .options import one_of, options_of, refusal, whole
from .tailbench_apps import APPLICATIONS, Application

ROOT = "TAILBENCH_DIR"
OPTIONS = {"mode": "integrated", "format": "v0.9", "load-s": "5", "client-threads": "1"}
"""`load-s`: how long the application loads its data after its client has come, at most about."""

NO_ARRIVALS = "gaps between arrivals follow from seed and rate; no schedule is recorded that could show it"
"""TailBench++'s dates are no schedule: which requests are measured depends on which were answered first, and
a late request has the date at which its client came to it. They are kept all the same, in `dates`."""

PATIENCE_S = 60.0
SHORT_RECEIVE = re.compile(r"recvd = \d+, expected = \d+")


def root_folder(environment: Mapping[str, str] = os.environ) -> Path | None:
    """Where the installation is."""
    named = environment.get(ROOT)
    return Path(named) if named else None


def data_folder(root: Path) -> Path:
    """Where its inputs are: DATA_ROOT in the installation's configs.sh."""
    configs = root / "configs.sh"
    text = configs.read_text(encoding="utf-8", errors="replace") if configs.exists() else ""
    told = re.findall(r"^\s*(?:export\s+)?DATA_ROOT=[\"']?([^\s\"'#]+)", text, re.MULTILINE)
    return Path(told[-1]) if told else root / "tailbench.inputs"


@dataclass(frozen=True, slots=True)
class Asked:
    """An order in TailBench's terms."""

    order: Order
    application: Application
    networked: bool
    form: Format
    load_s: int
    client_threads: int

    @property
    def work(self) -> Path:
        """Where it runs."""
        return self.order.folder / "work"

    @property
    def measured(self) -> int:
        """Requests. TailBench has a number of them, not a time."""
        return max(1, round(self.order.rate_per_s * self.order.seconds))

    @property
    def warmup(self) -> int:
        """Requests before those: never 0, with which v0.9 measures nothing. A networked server of v0.9 loads
        only when its client has come, whose requests queue meanwhile; they must all be warm-up."""
        loading_s = 2 * self.load_s if self.networked else 0
        return max(1, math.ceil(self.order.rate_per_s * max(self.order.warmup_s, loading_s)))

    def variables(self, port: int) -> dict[str, str]:
        """Of server and client."""
        return {
            "TBENCH_WARMUPREQS": str(self.warmup),
            "TBENCH_MAXREQS": str(self.measured),
            "TBENCH_QPS": f"{self.order.rate_per_s:g}",
            "TBENCH_RANDSEED": str(self.order.seed % 2**31),
            "TBENCH_CLIENT_THREADS": str(self.client_threads),
            "TBENCH_MINSLEEPNS": "0",
            "TBENCH_SERVER": "127.0.0.1",
            "TBENCH_SERVER_PORT": str(port),
            "TBENCH_NCLIENTS": "1",
            "TBENCH_ID": "0",
        }


@dataclass(slots=True)
class Serving:
    """A run: one process that asks itself, or a server and its client."""

    asked: Asked
    writer: Child
    """Writes the latencies."""
    server: Child | None = None
    _end_s: float = 0.0

    def pids(self) -> tuple[int, ...]:
        return (self.server or self.writer).pids()

    def begin(self, start_ns: int) -> None:
        per_s = self.asked.order.rate_per_s
        self._end_s = start_ns / 1e9 + self.asked.load_s + (self.asked.warmup + self.asked.measured) / per_s
        self.writer.release(start_ns)

    def ensure_alive(self) -> None:
        """A server may end at its last answer, before its client."""
        if self.writer.process.poll() != 0:
            self.writer.ensure_alive()

    def finish(self) -> Outcome:
        status = self.writer.wait(self._end_s - time.monotonic() + PATIENCE_S)
        if status != 0:
            raise failure(self.asked.order.name, self._why(status))
        try:
            requests = read(self.asked.work, self.asked.form)
        except ValueError as error:
            raise failure(self.asked.order.name, f"{error}: {last_line(self.writer.log)}") from error
        return outcome(self.asked, requests)

    def _why(self, status: int | None) -> str:
        logs = [self.writer.log, *([self.server.log] if self.server else [])]
        said = "\n".join(log.read_text(encoding="utf-8", errors="replace")[-20_000:] for log in logs)
        if SHORT_RECEIVE.search(said):
            return "a message came in parts, which v0.9's recvfull() cannot take: TailBench++ has mended it"
        if status is None:
            return "does not end: asks for more than it can serve, or never got its requests"
        return f"exit status {status}: {last_line(self.writer.log)}"

    def stop(self) -> None:
        self.writer.kill()
        if self.server:
            self.server.kill()


def outcome(asked: Asked, requests: Requests) -> Outcome:
    """With the files that `dasec load` would have written."""
    samples = asked.order.folder / "samples"
    write(samples, requests.samples)
    count, notes = len(requests.sojourns), [NO_ARRIVALS]
    if requests.dates:
        write(asked.order.folder / "dates", requests.offsets())
    else:
        notes.append("v0.9 keeps no times: the seconds are what so many requests take at the rate")
    if count != asked.measured:
        notes.append(f"{asked.measured} requests were asked for, {count} are in the file")
    return Outcome(
        work=count,
        unit="requests",
        seconds=requests.seconds or count / asked.order.rate_per_s,
        latencies=latencies(requests.sojourns),
        samples=samples,
        notes=tuple(notes),
    )


@dataclass(frozen=True, slots=True)
class TailBench:
    """One of its applications; `threads` are those that serve."""

    name: str
    application: str
    kind: Kind = Kind.SERVICE

    def missing(self) -> str | None:
        root, application = root_folder(), APPLICATIONS[self.application]
        if root is None:
            return f"{ROOT}: not set: name the folder of an installation of TailBench"
        binary = root / application.folder / application.integrated
        networked = root / application.folder / application.server
        if not os.access(binary, os.X_OK) and not os.access(networked, os.X_OK):
            return f"{binary}: is not there: build {self.application} in {ROOT}"
        return None

    def vcpus(self, order: Order) -> int:
        return order.threads

    def critical(self, order: Order) -> tuple[str, ...]:
        """All its threads have the process's name."""
        return ()

    def start(self, order: Order, place: Place) -> Serving:
        asked = self._asked(order)
        root, port = root_folder(), free_port()
        if root is None:
            raise failure(order.name, f"{ROOT}: not set")
        application = asked.application
        needed = (application.server, application.client) if asked.networked else (application.integrated,)
        for binary in needed:
            if not os.access(root / application.folder / binary, os.X_OK):
                raise failure(order.name, f"{root / application.folder / binary}: is not there")
        link_folder(root / application.folder, asked.work)
        arguments, variables = application.filled(order.threads, data_folder(root))
        environment = variables | asked.variables(port)
        if asked.networked:
            return _networked(asked, place, arguments, environment, port)
        program = within(asked.work, environment, (f"./{application.integrated}", *arguments))
        return Serving(asked, Child.start(order.name, place, held(program), order.folder / "log"))

    def _asked(self, order: Order) -> Asked:
        options = options_of(order, OPTIONS)
        if order.rate_per_s <= 0:
            raise refusal(order, "rate", "must be above 0: TailBench has no other load")
        return Asked(
            order,
            APPLICATIONS[self.application],
            one_of(order, "mode", options["mode"], ("integrated", "networked")) == "networked",
            FORMATS[one_of(order, "format", options["format"], tuple(FORMATS))],
            whole(order, "load-s", options["load-s"], 0),
            whole(order, "client-threads", options["client-threads"]),
        )


def link_folder(source: Path, work: Path) -> None:
    """A folder with links to all that is in the application's, apart from an older run's results."""
    work.mkdir(parents=True)
    for entry in source.iterdir():
        if not re.fullmatch(r"lats.*\.bin", entry.name):
            (work / entry.name).symlink_to(entry.resolve())


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
    return Serving(asked, client, server)


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
