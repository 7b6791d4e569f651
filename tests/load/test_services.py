"""Our own services in Go and Java under our client, made by Debian's compilers, which are not installed."""

from __future__ import annotations

import contextlib
import json
import time
import urllib.error
import urllib.request
from collections import Counter
from pathlib import Path

import pytest

from dasec.critical.names import matches
from dasec.errors import Refusal
from dasec.lab.kit.driver import WorkOrder
from dasec.lab.kit.process import free_port, name_of, thread_ids
from experiments.drivers import services
from experiments.drivers.served import listens
from experiments.drivers.servers import SERVERS
from experiments.places.places import Anywhere
from guests.waiting import wait_for

from .debian import found_in_path
from .orders import carried_out
from .tool import Tool

BOTH = ("go", "java")


@pytest.fixture(autouse=True)
def _path(tool: Tool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DASEC_LOAD", str(tool.path))
    monkeypatch.setattr(services, "BUILT", tmp_path)  # what is made here is asked, not what lies around
    found_in_path(BOTH, tmp_path / "bin", monkeypatch)


def order(folder: Path, **options: str) -> WorkOrder:
    return WorkOrder("one", 2, 40, 1, 0.5, 1.0, folder, options)  # Java compiles meanwhile


@pytest.mark.parametrize("name", BOTH)
def test_every_request_is_answered_without_an_error_beside_background(name: str, tmp_path: Path) -> None:
    asked = order(tmp_path / "order", entries="2000", background="1")
    done = carried_out(SERVERS[name], asked, after_ns=500_000_000)
    assert done.work > 0
    assert (done.errors, done.unfinished) == (0, 0)


@pytest.mark.parametrize("name", BOTH)
def test_an_answer_has_the_entries_of_its_key_by_group_the_cheapest_first(name: str, tmp_path: Path) -> None:
    driver, port = SERVERS[name], free_port()
    assert isinstance(driver, services.OwnService)
    asked = order(tmp_path / "order", entries="500", picked="40")
    program = services.found(driver.program)
    options = {"entries": "500", "picked": "40", "heap-mb": "32", "warm": "5"}
    child = Anywhere().start(
        [str(program), *driver.words(asked, options, "127.0.0.1", port)], tmp_path / "log"
    )
    try:
        wait_for(lambda: listens(port))
        groups = json.loads(get(port, "00000007"))
        assert sum(map(len, groups.values())) == 40
        for group in groups.values():
            assert [one["price"] for one in group] == sorted(one["price"] for one in group)
        assert get(port, "00000007") == get(port, "00000007") != get(port, "00000008")
        with pytest.raises((urllib.error.HTTPError, OSError)):
            get(port, "nothing")
    finally:
        child.kill()
        child.wait()


def get(port: int, name: str) -> bytes:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/{name}", timeout=10) as answer:
        read: bytes = answer.read()
        return read


def test_java_has_the_vcpus_that_its_driver_counts_before_and_after_requests(tmp_path: Path) -> None:
    asked = order(tmp_path / "order", entries="2000")
    driver = SERVERS["java"]
    running = driver.start(asked, Anywhere())
    try:
        running.await_up()
        wait_for(lambda: vcpus(driver.vcpu_names, running.pids()).total() == driver.vcpus(asked))
        before = vcpus(driver.vcpu_names, running.pids())
        running.begin(time.monotonic_ns() + 500_000_000)
        time.sleep(0.8)
        assert vcpus(driver.vcpu_names, running.pids()) == before
        assert before["serve-*"] == asked.threads
    finally:
        running.stop()


def vcpus(patterns: tuple[str, ...], pids: tuple[int, ...]) -> Counter[str]:
    """By the patterns of their names."""
    names: list[str] = []
    for one in thread_ids(pids):
        with contextlib.suppress(OSError):  # Java ends compilers that have nothing to do
            names.append(name_of(*one))
    return Counter(pattern for name in names for pattern in patterns if matches(pattern, name))


def test_go_has_more_threads_than_serve_and_all_are_called_the_same(tmp_path: Path) -> None:
    running = SERVERS["go"].start(order(tmp_path / "order", entries="2000"), Anywhere())
    try:
        running.await_up()
        names = {name_of(*one) for one in thread_ids(running.pids())}
        assert names == {"dasec-go"}
        assert len(thread_ids(running.pids())) > 2
    finally:
        running.stop()


@pytest.mark.parametrize(
    ("name", "options", "complaint"),
    [
        ("go", {"entries": "0"}, "one: entries: must be a whole number from 1 on, got '0'"),
        ("java", {"picked": "many"}, "one: picked: must be a whole number from 1 on, got 'many'"),
        ("java", {"heap-mb": "0"}, "one: heap-mb: must be a whole number from 1 on, got '0'"),
        ("go", {"heap-mb": "8"}, "one: heap-mb: is no option of this application"),
    ],
)
def test_an_order_that_makes_no_sense_is_one_line(
    name: str, options: dict[str, str], complaint: str, tmp_path: Path
) -> None:
    with pytest.raises(Refusal) as caught:
        SERVERS[name].critical(order(tmp_path / "order", **options))
    (line,) = caught.value.lines
    assert line.startswith(complaint)


def test_without_the_program_it_is_said_how_it_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    assert SERVERS["go"].missing() == "dasec-go: not found: make -C experiments/services go (golang-go)"
