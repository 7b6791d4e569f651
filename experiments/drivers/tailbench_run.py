"""One run of a TailBench application: what it is told, and what its files say afterwards."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from dasec.lab.kit.driver import DRAIN_S, WorkDone, WorkOrder
from dasec.lab.kit.errors import failure
from dasec.lab.kit.load_driver import ToolRun
from dasec.lab.kit.process import Child, last_line
from dasec.lab.load_tool import latencies

from .lats import Format, Requests, read, write
from .tailbench_apps import Application

NO_ARRIVALS = "gaps between arrivals follow from seed and rate; no schedule is recorded that could show it"
"""TailBench++'s dates are no schedule: which requests are measured depends on which were answered first, and
a late request has the date at which its client came to it. They are kept all the same, in `dates`."""

PATIENCE_S = 60.0
SPARE = 4.0
"""Standard deviations of how long so many arrivals take."""

SHORT_RECEIVE = re.compile(r"recvd = \d+, expected = \d+")


@dataclass(frozen=True, slots=True)
class Asked:
    """An order in TailBench's terms."""

    order: WorkOrder
    options: Mapping[str, str]
    application: Application
    networked: bool
    form: Format
    load_s: int
    client_threads: int
    gated: bool = False

    @property
    def ready(self) -> Path:
        """There when it has loaded, if it is gated."""
        return self.order.folder / "ready"

    @property
    def work(self) -> Path:
        """Where it runs."""
        return self.order.folder / "work"

    @property
    def measured(self) -> int:
        """Requests. TailBench has a number of them, not a time."""
        return max(1, round(self.order.rate_per_s * self.order.seconds))

    @property
    def beyond(self) -> int:
        """Requests that it is asked for behind those. Gaps are random: without them one of eight VMs would be
        through and gone while others are still measured, and nobody could tell what it computed."""
        return math.ceil(SPARE * math.sqrt(self.warmup + self.measured)) if self.gated else 0

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
            "TBENCH_MAXREQS": str(self.measured + self.beyond),
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
    beside: tuple[ToolRun, ...] = ()
    _end_s: float = 0.0

    def await_up(self) -> None:
        """A server listens before its client is started; the client waits in a shell. Behind the gate the
        data is loaded."""
        process = self.server or self.writer
        if self.asked.gated:
            process.wait_until(self.asked.ready.exists, "has loaded")
        process.wait_until(lambda: bool(process.pids()), "is there")
        for one in self.beside:
            one.await_up()

    def pids(self) -> tuple[int, ...]:
        beside = (pid for one in self.beside for pid in one.pids())
        return (*(self.server or self.writer).pids(), *beside)

    def begin(self, start_ns: int) -> None:
        asked, gated = self.asked, self.asked.gated
        requests = asked.warmup + asked.measured + asked.beyond
        loading_s = 0 if gated else asked.load_s
        self._end_s = start_ns / 1e9 + loading_s + requests / asked.order.rate_per_s
        if gated:
            self.writer.tell(str(start_ns))
        else:
            self.writer.release(start_ns)
        for one in self.beside:
            one.begin(start_ns)

    def ensure_alive(self) -> None:
        """A server may end at its last answer, before its client."""
        if self.writer.process.poll() != 0:
            self.writer.ensure_alive()
        for one in self.beside:
            one.ensure_alive()

    def finish(self) -> WorkDone:
        patience_s = DRAIN_S if self.asked.gated else PATIENCE_S
        status = self.writer.wait(self._end_s - time.monotonic() + patience_s)
        if status != 0:
            raise failure(f"{self.asked.order.name}: {self._why(status)}")
        try:
            requests = read(self.asked.work, self.asked.form)
        except ValueError as error:
            raise failure(f"{self.asked.order.name}: {error}: {last_line(self.writer.log)}") from error
        own = tuple(one.own_cpu(one.await_end()) for one in self.beside)
        return replace(outcome(self.asked, requests), own_cpu=own)

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
        for one in self.beside:
            one.stop()
        if self.server:
            self.server.kill()


def outcome(asked: Asked, requests: Requests) -> WorkDone:
    """With the files that `dasec load` would have written."""
    samples = asked.order.folder / "samples"
    if asked.gated:
        requests = requests.first(asked.measured)
    write(samples, requests.samples)
    count, notes = len(requests.sojourns), [NO_ARRIVALS]
    if requests.dates:
        write(asked.order.folder / "dates", requests.offsets())
    else:
        notes.append("v0.9 keeps no times: the seconds are what so many requests take at the rate")
    if count != asked.measured:
        notes.append(f"{asked.measured} requests were asked for, {count} are in the file")
    return WorkDone(
        work=count,
        unit="requests",
        seconds=requests.seconds or count / asked.order.rate_per_s,
        latencies=latencies(requests.sojourns),
        samples=samples,
        notes=tuple(notes),
    )
