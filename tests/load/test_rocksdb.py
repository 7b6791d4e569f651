"""Debian's RocksDB in our server under our client, compiled against its package, which is not installed."""

from __future__ import annotations

import socket
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from dasec.errors import Refusal
from dasec.lab.kit.driver import WorkOrder
from dasec.lab.kit.load_driver import ToolRun
from dasec.lab.kit.process import free_port, name_of, read_json, thread_ids
from experiments.drivers import services
from experiments.drivers.served import listens
from experiments.drivers.servers import SERVERS
from experiments.places.places import Anywhere
from guests.waiting import wait_for

from .debian import found_in_path
from .orders import carried_out
from .tool import Node, Tool

DRIVER = SERVERS["rocksdb"]
WRITING = {"get_ratio": "0.2", "value_bytes": "2000", "memtable_kb": "64"}


@pytest.fixture(autouse=True)
def _path(tool: Tool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DASEC_LOAD", str(tool.path))
    monkeypatch.setattr(services, "BUILT", tmp_path)  # what is made here is asked, not what lies around
    found_in_path(("rocksdb",), tmp_path / "bin", monkeypatch)


def order(folder: Path, **options: str) -> WorkOrder:
    told = {"keys": "200", **{name.replace("_", "-"): text for name, text in options.items()}}
    return WorkOrder("one", 2, 400, 1, 0.05, 0.3, folder, told)


@pytest.mark.parametrize(
    "options",
    [
        {"value_bytes": "1-40000", "get_ratio": "0.5"},
        {"get_ratio": "0", "key_bytes": "250"},
        {"get_ratio": "1", "background": "1"},
    ],
)
def test_every_value_is_found_and_every_request_answered(options: dict[str, str], tmp_path: Path) -> None:
    asked = order(tmp_path / "order", **options)
    done = carried_out(DRIVER, asked, after_ns=500_000_000)
    assert done.work > 0
    assert (done.errors, done.unfinished) == (0, 0)
    counts = Node(read_json(asked.folder / "out.json"))["redis"]
    assert counts["hits"].integer() == counts["gets"].integer()
    assert counts["gets"].integer() + counts["sets"].integer() == done.work


@contextmanager
def running(asked: WorkOrder) -> Iterator[ToolRun]:
    found = DRIVER.start(asked, Anywhere())
    try:
        found.await_up()
        assert isinstance(found, ToolRun)
        yield found
    finally:
        found.stop()


def test_all_of_its_vcpus_are_there_before_it_begins(tmp_path: Path) -> None:
    asked = order(tmp_path / "order", background="1")
    with running(asked) as one:
        names = Counter(name_of(*thread) for thread in thread_ids(one.pids()))
    vcpus = {"serve-0": 1, "serve-1": 1, "rocksdb:low": 1, "rocksdb:high": 1, "bg-0": 1}
    assert {name: names[name] for name in vcpus} == vcpus
    assert DRIVER.vcpus(asked) == len(vcpus)


def test_it_flushes_and_compacts_while_it_is_asked_and_leaves_no_files(tmp_path: Path) -> None:
    asked = order(tmp_path / "order", housekeeping="true", **WRITING)
    assert carried_out(DRIVER, replace(asked, seconds=2), after_ns=500_000_000).errors == 0
    assert not (asked.folder / "data").exists()


def test_a_run_that_only_reads_is_refused_where_it_has_to_keep_house(tmp_path: Path) -> None:
    asked = order(tmp_path / "order", housekeeping="true", get_ratio="1")
    with pytest.raises(Refusal, match="one: housekeeping: no flush, no compaction since requests began"):
        carried_out(DRIVER, asked, after_ns=500_000_000)


@pytest.fixture
def port(tmp_path: Path) -> Iterator[int]:
    """Of a server of its own."""
    port = free_port()
    words = (str(services.found("dasec-rocksdb")), "127.0.0.1", str(port), "1", str(tmp_path / "db"), "65536")
    child = Anywhere().start(words, tmp_path / "log")
    try:
        wait_for(lambda: listens(port))
        yield port
    finally:
        child.kill()
        child.wait()


def connected(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), 5)


def test_requests_that_come_in_parts_and_together_are_answered_in_turn(port: int) -> None:
    asked = b"*3\r\n$3\r\nset\r\n$1\r\nk\r\n$4\r\n\r\n\r\n\r\n" + b"*2\r\n$3\r\nGET\r\n$1\r\nk\r\n" * 2
    asked += b"*2\r\n$3\r\nGET\r\n$1\r\nx\r\n*1\r\n$4\r\nPING\r\n*1\r\n$4\r\nQUIT\r\n"
    due = b"+OK\r\n" + b"$4\r\n\r\n\r\n\r\n" * 2 + b"$-1\r\n+PONG\r\n-ERR there are GET, SET and PING\r\n"
    with connected(port) as line:
        for part in (asked[:1], asked[1:20], asked[20:21], asked[21:]):
            line.sendall(part)
            time.sleep(0.02)  # so that they do not come as one
        came = b""
        while len(came) < len(due):
            came += line.recv(4096)
    assert came == due


def test_who_speaks_something_else_is_hung_up_on_and_nobody_else(port: int) -> None:
    with connected(port) as other:
        for sent in (b"GET k\r\n", b"*4\r\n", b"*2\r\n$-1\r\n", b"*2\r\n$9999999999\r\n", b"*" * 20):
            with connected(port) as line:
                line.sendall(sent)
                assert line.recv(4096) == b"", sent
        other.sendall(b"*1\r\n$4\r\nPING\r\n")
        assert other.recv(4096) == b"+PONG\r\n"


def test_a_folder_that_cannot_be_used_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    words = (str(services.found("dasec-rocksdb")), "127.0.0.1", "1", "1", str(tmp_path / "file"), "65536")
    child = Anywhere().start(words, tmp_path / "log")
    assert child.wait(30) == 1
    (said,) = (tmp_path / "log").read_text().splitlines()
    assert said.startswith(f"dasec-rocksdb: {tmp_path / 'file'}: ")


def test_without_the_program_it_is_said_how_it_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    how = "make -C experiments/services rocksdb (librocksdb-dev)"
    assert DRIVER.missing() == f"dasec-rocksdb: not found: {how}"
