"""A server that loses a connection, or answers errors: nothing of it leaves the latencies."""

from __future__ import annotations

import socketserver
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from dasec.lab.kit.driver import DRAIN_S, WorkDone, WorkOrder
from dasec.lab.kit.load_driver import ToolRun, requests, tool_command
from dasec.lab.kit.process import Child
from experiments.places.places import Anywhere

from .tool import Tool, read_samples

KEYS = 10
RATE = 400


@dataclass
class Store:
    """memcached's side of the protocol, without values. Of all requests after the keys some fail, and from
    one on a connection has no more answers and is closed a while later."""

    fails: range = range(0)
    silent_from: int | None = None
    asked: int = 0
    counting: threading.Lock = field(default_factory=threading.Lock)

    def number(self) -> int:
        with self.counting:
            self.asked += 1
            return self.asked - KEYS


@contextmanager
def serving(store: Store) -> Iterator[int]:
    """Its port."""

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            for line in self.rfile:
                words = line.split()
                if words[0] == b"set":
                    self.rfile.read(int(words[-1]) + 2)
                number = store.number()
                if number == store.silent_from:
                    time.sleep(0.2)  # the client goes on to ask
                    return
                if number in store.fails:
                    self.wfile.write(b"SERVER_ERROR out of memory\r\n")
                else:
                    self.wfile.write(b"STORED\r\n" if words[0] == b"set" else b"END\r\n")

    class Server(socketserver.ThreadingTCPServer):
        allow_reuse_address = daemon_threads = True

    with Server(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield int(server.server_address[1])
        finally:
            server.shutdown()
            thread.join()


def options(port: int) -> dict[str, str]:
    return {"port": str(port), "keys": str(KEYS), "connections": "4", "drain-seconds": f"{DRAIN_S:g}"}


def driven(folder: Path, port: int) -> WorkDone:
    """What a run makes of it."""
    order = WorkOrder("asking", 1, RATE, 1, 0.0, 1.0, folder / "order")
    order.folder.mkdir()
    command = tool_command(order, "memcached", {**options(port), **requests(order)})
    run = ToolRun(order, Child.start("asking", Anywhere(), command, order.folder / "log"), is_foreign=True)
    try:
        run.await_up()
        run.begin(time.monotonic_ns() + 50_000_000)
        return run.finish()
    finally:
        run.stop()


def test_requests_on_a_connection_that_is_lost_count_as_late_in_the_clients_own_summary(
    tool: Tool, tmp_path: Path
) -> None:
    shape = ("--seconds", "1", "--warmup", "0", "--rate", str(RATE), "--samples", str(tmp_path / "samples"))
    with serving(Store(silent_from=RATE // 4)) as port:
        told = (word for name, text in options(port).items() for word in (f"--{name}", text))
        result = tool.run("memcached", *shape, *told)
    lost, latency = result["errors"].integer(), result["latency_ns"]
    assert result["memcached"]["connections_lost"].integer() == 1
    assert lost > 1
    assert latency["count"].integer() == result["arrivals_scheduled"].integer()
    assert latency["max"].integer() == latency["p99"].integer() == int(DRAIN_S * 1e9)
    assert latency["mean"].number() > lost / latency["count"].integer() * DRAIN_S * 1e9
    samples = read_samples(tmp_path / "samples")
    assert len(samples) == result["completed"].integer() == result["queue_ns"]["count"].integer()


@pytest.mark.parametrize(
    "store", [Store(silent_from=RATE // 4), Store(fails=range(100, 110))], ids=["lost", "refused"]
)
def test_a_run_counts_what_failed_as_late_and_says_so(
    tool: Tool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, store: Store
) -> None:
    monkeypatch.setenv("DASEC_LOAD", str(tool.path))
    with serving(store) as port:
        done = driven(tmp_path, port)
    assert done.latencies is not None
    assert done.errors > 1
    assert done.latencies.count == done.work + done.errors
    assert done.latencies.percentiles_ns["p999"] == pytest.approx(DRAIN_S * 1e9, rel=1e-3)
    assert done.notes == (f"{done.errors} requests that failed count as {DRAIN_S:g} s",)
