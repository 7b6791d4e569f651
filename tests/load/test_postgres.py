"""Debian's PostgreSQL under our client, with a cluster that its own initdb makes; nothing is installed."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from dasec.errors import Refusal
from dasec.lab.kit.driver import WorkOrder
from dasec.lab.kit.process import name_of, read_json, thread_ids
from experiments.drivers import services
from experiments.drivers.postgres import OWN_PROCESSES
from experiments.drivers.servers import SERVERS
from experiments.places.places import Anywhere
from guests.waiting import wait_for

from .debian import found_in_path
from .orders import carried_out
from .tool import Node, Tool

DRIVER = SERVERS["postgres"]
SEGMENTS = Path("/proc/sysvipc/shm")


@pytest.fixture(autouse=True)
def _path(tool: Tool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DASEC_LOAD", str(tool.path))
    monkeypatch.setattr(services, "BUILT", tmp_path)  # what is made here is asked, not what lies around
    found_in_path(("postgres",), tmp_path / "bin", monkeypatch)


def order(folder: Path, **options: str) -> WorkOrder:
    told = {"keys": "200", **{name.replace("_", "-"): text for name, text in options.items()}}
    return WorkOrder("one", 2, 400, 1, 0.05, 0.3, folder, told)


@pytest.mark.parametrize(
    "options",
    [
        {"value_bytes": "1-20000", "get_ratio": "0.5"},
        {"get_ratio": "0", "key_bytes": "250"},
        {"get_ratio": "1", "background": "1"},
    ],
)
def test_every_row_is_found_and_every_request_answered(options: dict[str, str], tmp_path: Path) -> None:
    asked = order(tmp_path / "order", **options)
    done = carried_out(DRIVER, asked, after_ns=500_000_000)
    assert done.work > 0
    assert (done.errors, done.unfinished) == (0, 0)
    counts = Node(read_json(asked.folder / "out.json"))["postgres"]
    assert counts["hits"].integer() == counts["gets"].integer()
    assert counts["gets"].integer() + counts["sets"].integer() == done.work


def test_a_connection_has_a_process_and_the_server_those_that_are_counted(tmp_path: Path) -> None:
    asked = order(tmp_path / "order", background="1")
    running = DRIVER.start(asked, Anywhere())
    try:
        running.await_up()
        names = Counter(name_of(*one) for one in thread_ids(running.pids()))
        assert names["postgres"] >= OWN_PROCESSES + asked.threads  # it may be cleaning something up
        assert DRIVER.vcpus(asked) == OWN_PROCESSES + asked.threads + 1
    finally:
        running.stop()


def test_it_leaves_neither_files_nor_shared_memory_behind(tmp_path: Path) -> None:
    asked = order(tmp_path / "order")
    running = DRIVER.start(asked, Anywhere())
    running.await_up()
    pids = set(running.pids())
    assert pids & makers()
    running.stop()
    wait_for(lambda: not pids & makers())
    assert not (asked.folder / "data").exists()
    running.stop()


def makers() -> set[int]:
    """The processes that made the shared memory that there is."""
    return {int(line.split()[4]) for line in SEGMENTS.read_text(encoding="ascii").splitlines()[1:]}


def test_it_writes_checkpoints_and_cleans_up_while_it_is_asked(tmp_path: Path) -> None:
    options = {"get_ratio": "0", "value_bytes": "2000", "housekeeping": "true"}
    asked = replace(order(tmp_path / "order", **options), rate_per_s=1000, seconds=4)
    assert carried_out(DRIVER, asked, after_ns=500_000_000).errors == 0


def test_a_run_without_a_checkpoint_is_refused_where_it_has_to_keep_house(tmp_path: Path) -> None:
    running = DRIVER.start(order(tmp_path / "order", get_ratio="1", housekeeping="true"), Anywhere())
    try:
        running.await_up()
        time.sleep(1.5)  # what setting the keys gave it to do
        running.begin(time.monotonic_ns() + 300_000_000)
        with pytest.raises(Refusal, match="one: housekeeping: no checkpoint.* since requests began"):
            running.finish()
    finally:
        running.stop()


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"housekeeping": "often"}, "one: housekeeping: must be one of true, false, got 'often'"),
        ({"connections": "3"}, "one: connections: is no option of this application"),
    ],
)
def test_an_order_that_makes_no_sense_is_one_line(
    options: dict[str, str], complaint: str, tmp_path: Path
) -> None:
    with pytest.raises(Refusal) as caught:
        DRIVER.critical(order(tmp_path / "order", **options))
    (line,) = caught.value.lines
    assert line.startswith(complaint)


def test_without_the_program_it_is_said_how_it_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    how = "make -C experiments/services postgres (postgresql)"
    assert DRIVER.missing() == f"dasec-postgres: not found: {how}"
