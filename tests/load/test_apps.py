"""The drivers that CI can run: each from start to stop, and what they leave behind."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from dasec.errors import Refusal
from dasec.lab.kit.driver import WorkKind, WorkOrder
from dasec.lab.kit.process import free_port, in_session
from experiments.drivers import selftest
from experiments.drivers.catalogue import DRIVERS
from experiments.drivers.selftest import run, trial_of
from experiments.places.places import Anywhere

from ..conftest import refuse
from .orders import carried_out
from .test_memcached import server
from .tool import Tool

NATIVE = ("fanout", "memcached", "matrixmul")
PACKAGED = (
    "sysbench-cpu",
    "sysbench-threads",
    "stress-ng-capped",
    "stress-ng-burstable",
    "hackbench",
    "db-bench",
)


@pytest.fixture(autouse=True)
def _tool(tool: Tool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DASEC_LOAD", str(tool.path))


def order(
    folder: Path, threads: int = 3, seed: int = 1, options: Mapping[str, str] | None = None
) -> WorkOrder:
    return WorkOrder("one", threads, 200, seed, 0.05, 0.2, folder, options or {})


@pytest.mark.parametrize("name", [*NATIVE, *PACKAGED])
def test_an_application_does_something_that_is_measured(name: str, tmp_path: Path) -> None:
    driver = DRIVERS[name]
    reason = driver.missing()
    if reason is not None:
        refuse(reason)
    trial = trial_of(name)
    short = trial if name in PACKAGED else replace(trial, seconds=0.3)
    outcome = run(driver, Anywhere(), tmp_path / "order", short)
    assert outcome.work > 0
    assert outcome.per_s > 0
    assert (outcome.latencies is not None) == (driver.kind is WorkKind.SERVICE)
    assert (outcome.arrivals is not None) == (driver.kind is WorkKind.SERVICE)


def test_a_trial_of_a_service_has_requests() -> None:
    services = [name for name, driver in DRIVERS.items() if driver.kind is WorkKind.SERVICE]
    assert [name for name in services if not trial_of(name).rate_per_s] == []


@pytest.mark.parametrize("name", ["fanout", "memcached"])
def test_same_seed_same_arrivals_and_another_seed_others(name: str, tmp_path: Path) -> None:
    found = []
    for number, seed in enumerate((5, 5, 6)):
        arrivals = carried_out(DRIVERS[name], order(tmp_path / str(number), seed=seed)).arrivals
        assert arrivals is not None
        found.append(arrivals.read_bytes())
    assert found[0] == found[1] != found[2]


def test_nothing_happens_before_it_is_told_to_begin(tmp_path: Path) -> None:
    running = DRIVERS["fanout"].start(order(tmp_path / "order"), Anywhere())
    try:
        running.await_up()
        (pid,) = running.pids()
        names = {(task / "comm").read_text().strip() for task in Path(f"/proc/{pid}/task").iterdir()}
        assert names == {"main", "helper-0", "helper-1"}
        time.sleep(0.6)  # longer than the whole order
        running.ensure_alive()
        running.begin(time.monotonic_ns() + 50_000_000)
        assert running.finish().work > 0
    finally:
        running.stop()


@pytest.mark.parametrize("name", ["fanout", "memcached", "matrixmul", "stress-ng-capped"])
def test_stopping_leaves_no_process_and_can_be_done_again(name: str, tmp_path: Path) -> None:
    driver = DRIVERS[name]
    reason = driver.missing()
    if reason is not None:
        refuse(reason)
    running = driver.start(order(tmp_path / "order", threads=4), Anywhere())
    running.await_up()
    running.begin(time.monotonic_ns())
    time.sleep(0.1)
    pids = running.pids()
    assert pids
    sessions = {os.getsid(pid) for pid in pids}
    running.stop()
    running.stop()
    assert [in_session(leader) for leader in sessions] == [()] * len(sessions)


def test_a_db_bench_is_filled_before_it_waits_and_leaves_no_files(tmp_path: Path) -> None:
    driver, asked = DRIVERS["db-bench"], order(tmp_path / "order", options={"keys": "500"})
    reason = driver.missing()
    if reason is not None:
        refuse(reason)
    running = driver.start(asked, Anywhere())
    try:
        running.await_up()
        files = sorted((asked.folder / "data").iterdir())
        time.sleep(1.5)  # longer than the whole order
        running.ensure_alive()
        assert sorted((asked.folder / "data").iterdir()) == files
    finally:
        running.stop()
    assert not (asked.folder / "data").exists()


def test_a_memcached_that_runs_already_is_asked_and_left_alone(tmp_path: Path) -> None:
    port = free_port()
    with server(port) as process:
        asked = order(tmp_path / "order", options={"address": f"127.0.0.1:{port}", "keys": "100"})
        driver = DRIVERS["memcached"]
        assert driver.vcpus(asked) == 0
        running = driver.start(asked, Anywhere())
        assert running.pids() == ()
        running.await_up()
        running.begin(time.monotonic_ns() + 50_000_000)
        assert running.finish().work > 0
        running.stop()
        assert process.poll() is None


@pytest.mark.parametrize(
    ("name", "threads", "options", "complaint"),
    [
        ("fanout", 3, {"speed": "2"}, "--speed: is not an option of service"),
        ("fanout", 3, {"rate": "2"}, "one: rate: is set here"),
        ("fanout", 3, {"helpers": "2"}, "one: helpers: follows from threads"),
        ("fanout", 1, {"variant": "convoy"}, "one: threads: must be at least 2, got '1'"),
        ("fanout", 3, {"variant": "pretend"}, "one: variant: must be one of fanout, pipeline, convoy"),
        ("memcached", 2, {"address": "here"}, "one: address: must be HOST:PORT, got 'here'"),
        ("memcached", 2, {"get-ratio": "2"}, "--get-ratio: "),
        ("memcached", 2, {"colour": "red"}, "one: colour: is no option of this application"),
        ("matrixmul", 1, {}, "one: threads: must be at least 2, main and a worker, got '1'"),
        ("matrixmul", 2, {"size": "big"}, "one: size: must be a whole number from 1 on, got 'big'"),
        ("hackbench", 3, {}, "one: threads: must be even and at least 2, got '3'"),
        ("db-bench", 1, {}, "one: threads: must be at least 2, one of them writes, got '1'"),
        ("db-bench", 2, {"keys": "many"}, "one: keys: must be a whole number from 1 on, got 'many'"),
        ("schbench", 1, {}, "one: threads: must be at least 2, one of them wakes, got '1'"),
        ("stress-ng-capped", 1, {"load": "much"}, "one: load: must be a whole number"),
        ("sysbench-cpu", 1, {"thread-locks": "2"}, "one: thread-locks: is no option"),
    ],
)
def test_an_order_that_makes_no_sense_is_one_line(
    name: str, threads: int, options: dict[str, str], complaint: str, tmp_path: Path
) -> None:
    with pytest.raises(Refusal) as caught:
        carried_out(DRIVERS[name], order(tmp_path / "order", threads, options=options))
    (line,) = caught.value.lines
    assert complaint in line


def test_vcpus_are_all_threads_that_compete() -> None:
    plain = order(Path("/nowhere"))
    busy = order(Path("/nowhere"), options={"background": "2", "background-wakes": "peer"})
    assert DRIVERS["fanout"].vcpus(plain) == 3
    assert DRIVERS["fanout"].vcpus(busy) == 7
    assert DRIVERS["fanout"].critical(plain) == ("main", "helper-*")
    assert DRIVERS["memcached"].critical(plain) == ("mc-worker",)


def test_what_is_missing_is_a_row_of_the_self_test(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    tested = selftest.test(DRIVERS["hackbench"], Anywhere(), tmp_path)
    assert (tested.works, tested.missing) == (False, True)
    assert tested.said == "hackbench: not found: apt-get install rt-tests"


def test_all_names_are_those_of_their_drivers() -> None:
    assert all(name == driver.name for name, driver in DRIVERS.items())
