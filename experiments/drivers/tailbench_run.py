"""One run of a TailBench application: what it is told, and what its files say afterwards."""

from __future__ import annotations

import math
import re
import time
from dataclasses import dataclass
from pathlib import Path

from dasec.lab.kit.driver import WorkDone, WorkOrder
from dasec.lab.kit.errors import failure
from dasec.lab.kit.process import Child, last_line
from dasec.lab.load_tool import latencies

from .lats import Format, Requests, read, write
from .tailbench_apps import Application

NO_ARRIVALS = "gaps between arrivals follow from seed and rate; no schedule is recorded that could show it"
"""TailBench++'s dates are no schedule: which requests are measured depends on which were answered first, and
a late request has the date at which its client came to it. They are kept all the same, in `dates`."""

PATIENCE_S = 60.0
SHORT_RECEIVE = re.compile(r"recvd = \d+, expected = \d+")


@dataclass(frozen=True, slots=True)
class Asked:
    """An order in TailBench's terms."""

    order: WorkOrder
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

    def await_up(self) -> None:
        """A server listens before its client is started; the client waits in a shell."""
        process = self.server or self.writer
        process.wait_until(lambda: bool(process.pids()), "is there")

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

    def finish(self) -> WorkDone:
        status = self.writer.wait(self._end_s - time.monotonic() + PATIENCE_S)
        if status != 0:
            raise failure(f"{self.asked.order.name}: {self._why(status)}")
        try:
            requests = read(self.asked.work, self.asked.form)
        except ValueError as error:
            raise failure(f"{self.asked.order.name}: {error}: {last_line(self.writer.log)}") from error
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


def outcome(asked: Asked, requests: Requests) -> WorkDone:
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
    return WorkDone(
        work=count,
        unit="requests",
        seconds=requests.seconds or count / asked.order.rate_per_s,
        latencies=latencies(requests.sojourns),
        samples=samples,
        notes=tuple(notes),
    )
