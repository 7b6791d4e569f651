"""Debian's Redis and nginx under our client, from packages that are unpacked and not installed."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from dasec.errors import Refusal
from dasec.lab.kit.driver import Driver, WorkOrder
from dasec.lab.kit.process import name_of, thread_ids
from experiments.drivers.redis import Saving
from experiments.drivers.servers import SERVERS
from experiments.places.places import Anywhere
from guests.waiting import wait_for

from .debian import found_in_path
from .orders import carried_out
from .tool import Tool


@pytest.fixture(autouse=True)
def _path(tool: Tool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DASEC_LOAD", str(tool.path))
    found_in_path(("memcached", "redis", "nginx"), tmp_path / "bin", monkeypatch)


def order(folder: Path, threads: int, **options: str) -> WorkOrder:
    told = {name.replace("_", "-"): text for name, text in options.items()}
    return WorkOrder("one", threads, 400, 1, 0.05, 0.3, folder, told)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("redis", {"keys": "200", "value_bytes": "1-20000", "get_ratio": "0.5"}),
        ("redis", {"keys": "200", "bgsave": "true", "background": "1"}),
        ("nginx", {"files": "3", "file_bytes": "30000"}),
        ("nginx", {"gzip": "false", "file_bytes": "70000", "connections": "2"}),
    ],
)
def test_every_request_is_answered_without_an_error(
    name: str, options: dict[str, str], tmp_path: Path
) -> None:
    done = carried_out(SERVERS[name], order(tmp_path / "order", 1, **options), after_ns=500_000_000)
    assert done.work > 0
    assert (done.errors, done.unfinished) == (0, 0)


def test_nginx_compresses_where_it_is_told_to(tmp_path: Path) -> None:
    work_s = {}
    for gzip in ("true", "false"):
        running = SERVERS["nginx"].start(order(tmp_path / gzip, 1, gzip=gzip), Anywhere())
        try:
            running.await_up()
            running.begin(time.monotonic_ns() + 500_000_000)
            running.finish()
            stats = [Path(f"/proc/{pid}/schedstat").read_text().split()[0] for pid in running.pids()]
            work_s[gzip] = sum(map(int, stats))
        finally:
            running.stop()
    assert work_s["true"] > 2 * work_s["false"]


def test_redis_saves_itself_in_a_process_of_its_own_when_requests_begin(tmp_path: Path) -> None:
    asked = order(tmp_path / "order", 1, keys="3000", value_bytes="10000", bgsave="true")
    running = SERVERS["redis"].start(asked, Anywhere())
    assert isinstance(running, Saving)
    try:
        running.await_up()
        before = running.pids()
        running.begin(time.monotonic_ns() + 500_000_000)
        wait_for(lambda: len(running.pids()) > len(before))
        (saving,) = set(running.pids()) - set(before)
        assert [name_of(*one) for one in thread_ids([saving])] == ["redis-server"]
        running.finish()
        wait_for((asked.folder / "dump.rdb").exists)
    finally:
        running.stop()


@pytest.mark.parametrize(
    ("name", "threads", "options", "complaint"),
    [
        ("redis", 2, {}, "one: threads: must be 1, Redis has no more that serve, got '2'"),
        ("redis", 1, {"bgsave": "often"}, "one: bgsave: must be one of true, false, got 'often'"),
        ("nginx", 1, {"gzip": "much"}, "one: gzip: must be one of true, false, got 'much'"),
        ("nginx", 1, {"files": "0"}, "one: files: must be a whole number from 1 on, got '0'"),
    ],
)
def test_an_order_that_makes_no_sense_is_one_line(
    name: str, threads: int, options: dict[str, str], complaint: str, tmp_path: Path
) -> None:
    with pytest.raises(Refusal) as caught:
        ask(SERVERS[name], order(tmp_path / "order", threads, **options))
    assert caught.value.lines == (complaint,)


def ask(driver: Driver, asked: WorkOrder) -> None:
    """All that an experiment asks a driver."""
    driver.vcpus(asked)
    driver.critical(asked)
    driver.start(asked, Anywhere()).stop()
