"""Synthetic vCPU threads, and the wake-up latency beside spinning ones."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from guests.waiting import wait_for

from .tool import Running, Tool


def test_threads_lists_the_tids_that_exist(start: Callable[..., Running]) -> None:
    run = start("threads", "--threads", "12")
    tids = run.ready["tids"].integers()
    pid = run.ready["pid"].integer()
    assert len(tids) == 12
    assert {str(tid) for tid in tids} | {str(pid)} == set(os.listdir(f"/proc/{pid}/task"))
    result = run.terminate()
    assert result["interrupted"].value is False  # without --seconds that is the normal end
    assert not Path(f"/proc/{pid}").exists()


def test_thousands_of_threads_start_and_end(start: Callable[..., Running]) -> None:
    run = start("threads", "--threads", "4096", "--rate", "0.1", "--burst-us", "10")
    assert len(set(run.ready["tids"].integers())) == 4096
    run.terminate()


def test_bursts_come_at_the_asked_rate(tool: Tool) -> None:
    result = tool.run("threads", "--threads", "5", "--rate", "100", "--burst-us", "50", "--seconds", "1")
    per_s = result["bursts"].integer() / result["seconds_measured"].number()  # it may be woken late
    assert 350 <= per_s <= 650  # 500 expected


def switches(run: Running, tid: int, kind: str) -> int:
    status = Path(f"/proc/{run.ready['pid'].integer()}/task/{tid}/status").read_text(encoding="ascii")
    return int(status.split(f"\n{kind}_ctxt_switches:")[1].split()[0])


def test_a_spinning_thread_uses_the_cpu_and_never_sleeps(start: Callable[..., Running]) -> None:
    run = start("threads", "--threads", "1", "--spin")
    (tid,) = run.ready["tids"].integers()
    run.work(0.1)  # it has begun
    slept = switches(run, tid, "voluntary")
    run.work(0.2)
    assert switches(run, tid, "voluntary") == slept
    assert run.terminate()["cpu_s"].number() > 0.3


def test_a_threads_run_cut_short_is_interrupted(start: Callable[..., Running]) -> None:
    result = start("threads", "--seconds", "50").terminate()
    assert result["interrupted"].value is True


def allowed_cpu() -> str:
    return str(min(os.sched_getaffinity(0)))


def test_wakeup_names_its_threads_before_it_measures(start: Callable[..., Running]) -> None:
    cpu = allowed_cpu()
    begin = time.monotonic()
    run = start("wakeup", "--cpu", cpu, "--hogs", "2", "--seconds", "1", "--settle-ms", "300")
    waker, hogs = run.ready["waker"].integer(), run.ready["hogs"].integers()
    assert len(hogs) == 2
    assert all(os.sched_getaffinity(tid) == {int(cpu)} for tid in (waker, *hogs))
    result = run.end()
    assert time.monotonic() - begin > 1.3
    assert result["latency_ns"]["count"].integer() == result["response_ns"]["count"].integer()


@pytest.mark.parametrize("work_us", [500, 2000])
def test_the_response_contains_the_work(tool: Tool, work_us: int) -> None:
    result = tool.run(
        *("wakeup", "--cpu", allowed_cpu(), "--hogs", "0", "--seconds", "1", "--settle-ms", "0"),
        *("--work-us", str(work_us)),
    )
    latency, response = result["latency_ns"]["mean"].number(), result["response_ns"]["mean"].number()
    assert response > latency + work_us * 1000 * 0.5


def test_an_interrupted_wakeup_has_a_result(start: Callable[..., Running]) -> None:
    run = start("wakeup", "--cpu", allowed_cpu(), "--seconds", "1000", "--settle-ms", "0")
    waker = run.ready["waker"].integer()
    wait_for(lambda: switches(run, waker, "voluntary") > 50)
    result = run.terminate()
    assert result["interrupted"].value is True
    assert result["latency_ns"]["count"].integer() > 20
