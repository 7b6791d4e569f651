"""The applications that dasec-load measures: how the tool is called, and what its result means."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ...errors import Refusal
from ..load_tool import figure, find_tool, latencies, read_sojourns
from .driver import DRAIN_S, OwnCpu, Place, WorkDone, WorkKind, WorkOrder
from .errors import failure
from .process import Child, last_line, read_json

STOP_PATIENCE_S = 10.0

NO_REQUESTS_PER_S = 1e-6
"""The load tool wants a rate above 0: this is one request in eleven days."""

BACKGROUND = "bg-"
UNAWAITED = (BACKGROUND, "logger", "peer-")
"""How the names of threads begin that no request waits for (experiments/load/src/background.h)."""

FEEDER = "feeder"
"""The option, and in the ready file the process, by which requests come from outside."""


def missing_tool() -> str | None:
    """Why dasec-load cannot be used; None: it can."""
    try:
        find_tool()
    except Refusal as refusal:
        return refusal.lines[0]
    return None


def tool_command(order: WorkOrder, subcommand: str, options: Mapping[str, str]) -> tuple[str, ...]:
    """dasec-load for this order; it waits for its start on standard input. An empty text is a flag."""
    ours = {
        "seconds": f"{order.seconds:g}",
        "warmup": f"{order.warmup_s:g}",
        "seed": str(order.seed),
        "start-on-stdin": "",
        "out": str(order.folder / "out.json"),
        "ready": str(order.folder / "ready"),
    }
    told = {**options, **ours}
    words = [
        word for name, text in told.items() for word in ((f"--{name}", text) if text else (f"--{name}",))
    ]
    return (str(find_tool()), subcommand, *words)


def requests(order: WorkOrder) -> dict[str, str]:
    """The options of a subcommand that has requests."""
    return {
        "rate": f"{order.rate_per_s:g}",
        "samples": str(order.folder / "samples"),
        "arrivals": str(order.folder / "arrivals"),
    }


@dataclass(slots=True)
class ToolRun:
    """A load tool that runs, the server that it asks, if it is not the workload itself, and others that work
    beside that server."""

    order: WorkOrder
    tool: Child
    server: Child | None = None
    beside: tuple[ToolRun, ...] = ()
    is_foreign: bool = False
    """The server is not ours."""
    _feeder: int | None = None
    _end_s: float | None = None

    def await_up(self) -> None:
        """Until all threads of the tool are there, and a server has its keys."""
        ready = self.order.folder / "ready"
        self.tool.wait_until(ready.exists, "ready")
        if FEEDER in self.order.options:
            self._feeder = int(figure(read_json(ready), "feeder_pid"))
            self.tool.place.take_out(self._feeder)
        for one in self.beside:
            one.await_up()

    def pids(self) -> tuple[int, ...]:
        """The server's, or the tool's without who feeds it."""
        own = () if self.is_foreign else (self.server or self.tool).pids()
        beside = (pid for one in self.beside for pid in one.pids())
        return (*(pid for pid in own if pid != self._feeder), *beside)

    def begin(self, start_ns: int) -> None:
        """Requests, and background."""
        self._end_s = start_ns / 1e9 + self.order.total_s
        self.tool.tell(str(start_ns))
        for one in self.beside:
            one.begin(start_ns)

    def ensure_alive(self) -> None:
        """A server as long as it is needed, a tool until its time is over."""
        if self.server:
            self.server.ensure_alive()
        self.tool.ensure_alive(self._end_s)
        for one in self.beside:
            one.ensure_alive()

    def await_end(self) -> Mapping[str, object]:
        """Waits for the tool; one with a backlog is told to write what it has. Its result."""
        left_s = (self._end_s or 0.0) - time.monotonic() + DRAIN_S
        if self.tool.wait(left_s + 1) is None:
            self.tool.terminate()
        if self.tool.wait(STOP_PATIENCE_S) != 0:
            status = self.tool.process.poll()
            said = last_line(self.tool.log)
            raise failure(f"{self.order.name}: load tool: exit status {status}: {said}")
        return read_json(self.order.folder / "out.json")

    def finish(self) -> WorkDone:
        """Latencies with those of requests that failed, or had no answer in time."""
        result, has_client = self.await_end(), self.is_foreign or self.server is not None
        own = [one.own_cpu(one.await_end()) for one in self.beside]
        own += [] if has_client else [self.own_cpu(result)]
        samples = self.order.folder / "samples"
        unfinished, errors = (int(figure(result, key)) for key in ("unfinished", "errors"))
        answered, lost = read_sojourns(samples), unfinished + errors
        if not answered and not lost and self.order.rate_per_s > NO_REQUESTS_PER_S:
            raise failure(
                f"{self.order.name}: no request was answered: is the rate too low for so few seconds?"
            )
        counted = ((unfinished, "without an answer"), (errors, "that failed"))
        notes = tuple(f"{count} requests {what} count as {DRAIN_S:g} s" for count, what in counted if count)
        return WorkDone(
            work=figure(result, "completed"),
            unit="requests",
            seconds=figure(result, "seconds_measured"),
            latencies=latencies([*answered, *[int(DRAIN_S * 1e9)] * lost]),
            samples=samples,
            arrivals=self.order.folder / "arrivals",
            errors=errors,
            unfinished=unfinished,
            late_sends=int(figure(result, "late_sends")),
            client_cpu_s=figure(result, "cpu", "total_s") if has_client else 0.0,
            own_cpu=tuple(own),
            notes=notes,
        )

    def own_cpu(self, result: Mapping[str, object]) -> OwnCpu:
        """The tool's account of itself."""
        window_s = figure(result, "cpu", "window_s")
        return OwnCpu(
            figure(result, "cpu", "total_s") / window_s,
            figure(result, "background", "cpu_s") / window_s,
            frozenset({self.tool.process.pid}),
            figure(result, "cpu", "waited_s") / window_s,
        )

    def stop(self) -> None:
        """The tool, its server and what is beside it."""
        self.tool.kill()
        for one in self.beside:
            one.stop()
        if self.server:
            self.server.kill()


def service_options(order: WorkOrder, options: Mapping[str, str]) -> dict[str, str]:
    """Of the tool's own service, whose work all runs that are compared count alike."""
    calibrated = {"iterations-per-us": repr(order.calibration)} if order.calibration else {}
    return {**requests(order), **calibrated, **options}


@dataclass(frozen=True, slots=True)
class LoadService:
    """The load tool's service with any of its options; `threads` are all of its threads. With the option
    `feeder` requests come from another process, which lives with the clients."""

    name: str = "service"
    kind: WorkKind = WorkKind.SERVICE

    def missing(self) -> str | None:
        """Of the tool."""
        return missing_tool()

    def vcpus(self, order: WorkOrder) -> int:
        """All threads."""
        return order.threads

    def critical(self, order: WorkOrder) -> tuple[str, ...]:  # noqa: ARG002  # the interface of drivers
        """Whoever writes down the options knows."""
        return ()

    def start(self, order: WorkOrder, place: Place) -> ToolRun:
        """One process, and perhaps its feeder."""
        order.folder.mkdir(parents=True)
        command = tool_command(order, "service", service_options(order, order.options))
        return self._run(order, Child.start(order.name, place, command, order.folder / "log"))

    def _run(self, order: WorkOrder, tool: Child) -> ToolRun:
        return ToolRun(order, tool)


class EndlessRun(ToolRun):
    """Requests are always there, so that what it got done is the CPU time that it had."""

    def finish(self) -> WorkDone:
        """Ends it: what waits would take for ever."""
        self.tool.terminate()
        result = self.await_end()
        return WorkDone(
            work=figure(result, "completed"),
            unit="requests",
            seconds=figure(result, "seconds_measured"),
            own_cpu=(self.own_cpu(result),),
        )


@dataclass(frozen=True, slots=True)
class EndlessService(LoadService):
    """The service as batch work: asked for more than it can do."""

    name: str = "endless"
    kind: WorkKind = WorkKind.BATCH

    def _run(self, order: WorkOrder, tool: Child) -> ToolRun:
        return EndlessRun(order, tool)


CALIBRATION_SECONDS = "0.05"


def calibrate(directory: Path) -> float:
    """Loop iterations a microsecond of work, measured once, so that every run has the same work to do."""
    out = directory / "calibration.json"
    command = [str(find_tool()), "service", "--seconds", CALIBRATION_SECONDS, "--warmup", "0"]
    command += ["--out", str(out), "--ready", str(directory / "calibration.ready")]
    done = subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        raise failure(f"load tool: cannot calibrate: {done.stderr.strip()}")
    return figure(read_json(out), "iterations_per_us")
