"""What all applications that dasec-load measures have in common: its files, and its result as an outcome."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

from dasec.errors import Refusal
from dasec.lab.kit.process import last_line, read_json
from dasec.lab.kit.tenant import DRAIN_S
from dasec.lab.load_tool import figure, find_tool, latencies, read_sojourns

from .child import Child, failure
from .driver import Order, Outcome

STOP_PATIENCE_S = 10.0


def missing_tool() -> str | None:
    """Why dasec-load cannot be used; None: it can."""
    try:
        find_tool()
    except Refusal as refusal:
        return refusal.lines[0]
    return None


def tool_command(order: Order, subcommand: str, options: Mapping[str, str]) -> tuple[str, ...]:
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


def requests(order: Order) -> dict[str, str]:
    """The options of a subcommand that has requests."""
    return {
        "rate": f"{order.rate_per_s:g}",
        "samples": str(order.folder / "samples"),
        "arrivals": str(order.folder / "arrivals"),
    }


@dataclass(slots=True)
class Measured:
    """A load tool that runs, and the server that it asks, if it is not the workload itself."""

    order: Order
    tool: Child
    server: Child | None = None
    foreign: bool = False
    """The server is not ours."""
    _end_s: float = 0.0

    def await_ready(self) -> None:
        """Until all threads of the tool are there, and a server has its keys. Else nothing is left of it."""
        try:
            self.tool.wait_until((self.order.folder / "ready").exists, "ready")
        except BaseException:
            self.stop()
            raise

    def pids(self) -> tuple[int, ...]:
        if self.foreign:
            return ()
        return (self.server or self.tool).pids()

    def begin(self, start_ns: int) -> None:
        self._end_s = start_ns / 1e9 + self.order.total_s
        self.tool.tell(str(start_ns))

    def ensure_alive(self) -> None:
        if self.server:
            self.server.ensure_alive()
        if time.monotonic() < self._end_s or not self._end_s:
            self.tool.ensure_alive()

    def await_end(self) -> Mapping[str, object]:
        """Waits for the tool; one with a backlog is told to write what it has. Its result."""
        left_s = self._end_s - time.monotonic() + DRAIN_S
        if self.tool.wait(left_s + 1) is None:
            self.tool.terminate()
        if self.tool.wait(STOP_PATIENCE_S) != 0:
            status = self.tool.process.poll()
            said = last_line(self.tool.log)
            raise failure(self.order.name, f"load tool: exit status {status}: {said}")
        return read_json(self.order.folder / "out.json")

    def finish(self) -> Outcome:
        result = self.await_end()
        samples, unfinished = self.order.folder / "samples", int(figure(result, "unfinished"))
        answered = read_sojourns(samples)
        if not answered and not unfinished:
            raise failure(self.order.name, "no request was answered: is the rate too low for so few seconds?")
        notes = (f"{unfinished} requests without an answer count as {DRAIN_S:g} s",) if unfinished else ()
        return Outcome(
            work=figure(result, "completed"),
            unit="requests",
            seconds=figure(result, "seconds_measured"),
            latencies=latencies([*answered, *[int(DRAIN_S * 1e9)] * unfinished]),
            samples=samples,
            arrivals=self.order.folder / "arrivals",
            errors=int(figure(result, "errors")),
            unfinished=unfinished,
            late_sends=int(figure(result, "late_sends")),
            client_cpu_s=figure(result, "cpu", "total_s") if self.server or self.foreign else 0.0,
            notes=notes,
        )

    def stop(self) -> None:
        self.tool.kill()
        if self.server:
            self.server.kill()
