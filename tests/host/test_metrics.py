"""The metrics against ground truth: the kernel's own counters of threads that fight for a core, to 1 %."""

from __future__ import annotations

import os
import threading
import time
import urllib.request
from bisect import bisect_left
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from prometheus_client.parser import text_string_to_metric_families

from dasec.lab.kit.process import free_port
from dasec.linux import procfs
from guests.waiting import wait_for

from ..unit.service.command import configuration
from ..unit.service.metrics import LOOPBACK
from .children import Children
from .daemons import daemon

pytestmark = [pytest.mark.host, pytest.mark.timing]

SPINNERS, CORE = 3, 0
WATCHED_S = 5.0
TOLERANCE = 0.01


class Truth(NamedTuple):
    """What the kernel says of one thread at one time."""

    clock_s: float
    on_cpu_s: float
    ready_s: float


class Watch:
    """Reads the kernel's counters of threads all the time, beside whatever else happens."""

    def __init__(self, tids: list[int]) -> None:
        self._seen: dict[int, list[Truth]] = {tid: [] for tid in tids}
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._read)
        self._thread.start()

    def close(self) -> None:
        self._over.set()
        self._thread.join()

    def at(self, tid: int, clock_s: float) -> Truth:
        """Between the two readings around that time."""
        seen = self._seen[tid]
        after = bisect_left(seen, clock_s, key=lambda truth: truth.clock_s)
        assert 0 < after < len(seen), "nobody looked at that time"
        old, new = seen[after - 1], seen[after]
        part = (clock_s - old.clock_s) / (new.clock_s - old.clock_s)
        return Truth(*(a + part * (b - a) for a, b in zip(old, new, strict=True)))

    def _read(self) -> None:
        while not self._over.wait(0.002):
            for tid, seen in self._seen.items():
                on_cpu_ns, ready_ns, _ = procfs.parse_schedstat(
                    procfs.read_bytes(f"/proc/{tid}/task/{tid}/schedstat")
                )
                seen.append(Truth(time.monotonic(), on_cpu_ns / 1e9, ready_ns / 1e9))


@pytest.fixture
def spinners() -> Iterator[list[int]]:
    children = Children()
    try:
        yield [children.spinner(CORE) for _ in range(SPINNERS)]
    finally:
        children.close()


@pytest.fixture
def aside(everywhere: frozenset[int]) -> Iterator[None]:
    """Whoever looks on runs on other cores than the spinners': beside these it had none for a minute and
    more, on a kernel that starves."""
    os.sched_setaffinity(0, everywhere - {CORE})
    yield
    os.sched_setaffinity(0, everywhere)


def scrape(port: int) -> dict[tuple[str, str], float]:
    """Name and thread of each sample."""
    with urllib.request.urlopen(f"http://{LOOPBACK}:{port}/metrics") as answer:
        text = answer.read().decode()
    return {
        (sample.name, sample.labels.get("tid", "")): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


@pytest.mark.usefixtures("aside")
def test_time_on_a_core_and_time_waited_are_the_kernels_to_one_percent(
    tmp_path: Path, spinners: list[int]
) -> None:
    port = free_port()
    text = f'policy = "none"\n[metrics]\nport = {port}\ninterval_s = 1\n'
    watch = Watch(spinners)
    try:
        with daemon(tmp_path, configuration(tmp_path, text, f"pids = {spinners}")):
            wait_for(lambda: scrape(port)["dasec_periods_total", ""] > 12)
            before = scrape(port)
            time.sleep(WATCHED_S)
            after = scrape(port)
            time.sleep(0.1)
    finally:
        watch.close()
    start_s, end_s = (each["dasec_last_period_monotonic_seconds", ""] for each in (before, after))
    assert end_s - start_s >= WATCHED_S - 2
    for tid in spinners:
        first, last = watch.at(tid, start_s), watch.at(tid, end_s)
        key = str(tid)
        for name, truth_s in (
            ("dasec_vcpu_run_seconds_total", last.on_cpu_s - first.on_cpu_s),
            ("dasec_vcpu_run_queue_wait_seconds_sum", last.ready_s - first.ready_s),
        ):
            assert after[name, key] - before[name, key] == pytest.approx(truth_s, rel=TOLERANCE), name
        ratio = after["dasec_vcpu_cpu_ready_ratio", key]
        assert ratio == pytest.approx(1 - 1 / SPINNERS, abs=0.15)
