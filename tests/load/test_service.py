"""The request-serving workload."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from guests.waiting import PATIENCE_S

from .tool import Node, Running, Tool, read_samples

SHORT = ("service", "--seconds", "1", "--warmup", "0.2", "--rate", "50")

SHAPES = [
    ["--variant", "fanout"],
    ["--variant", "fanout", "--helpers", "0"],
    ["--variant", "fanout", "--helpers", "3", "--joins"],
    ["--variant", "fanout", "--wake", "eventfd", "--imbalance", "3", "--tail-us", "100"],
    ["--variant", "fanout", "--feeder", "--distribution", "lognormal"],
    ["--variant", "fanout", "--feeder", "--answers"],
    ["--variant", "pipeline", "--stages", "3", "--helper-us", "200", "--imbalance", "2"],
    ["--variant", "pipeline", "--wake", "eventfd", "--feeder"],
    ["--variant", "convoy", "--helpers", "4"],
    ["--variant", "convoy", "--wake", "eventfd", "--distribution", "fixed"],
    ["--variant", "pretend", "--helpers", "4", "--helper-us", "300"],
    ["--variant", "pretend", "--wake", "eventfd", "--alternate-s", "0.2"],
    ["--background", "2", "--background-burst-us", "2000"],
    ["--background", "1", "--background-wakes", "logger"],
    ["--background", "1", "--background-wakes", "peer", "--wake", "eventfd"],
]


def total(result: Node) -> int:
    return sum(result[key].integer() for key in ("completed", "errors", "unfinished"))


@pytest.mark.parametrize("shape", SHAPES, ids=" ".join)
def test_each_shape_completes_every_request(tool: Tool, tmp_path: Path, shape: list[str]) -> None:
    path = tmp_path / "samples"
    result = tool.run(*SHORT, "--samples", str(path), *shape)
    samples = read_samples(path)
    assert result["completed"].integer() == result["arrivals_scheduled"].integer() > 0
    assert total(result) == result["arrivals_scheduled"].integer()
    assert len(samples) == result["completed"].integer()
    assert all(sample.queue_ns + sample.service_ns == sample.sojourn_ns for sample in samples)
    assert result["interrupted"].value is False


COARSE_CLOCK = """
#include <time.h>
#include <unistd.h>
#include <sys/syscall.h>
int clock_gettime(clockid_t id, struct timespec *now)
{
	static int times;
	long failed = syscall(SYS_clock_gettime, id, now);
	if (id == CLOCK_THREAD_CPUTIME_ID && times++ >= FINE_TIMES)
		now->tv_nsec -= now->tv_nsec % 4000000;
	return (int)failed;
}
"""


@pytest.mark.parametrize("fine_times", [0, 10])
def test_the_speed_of_a_core_is_known_where_the_clock_goes_in_ticks_from_the_start_or_later(
    tool: Tool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fine_times: int
) -> None:
    speed = tool.run(*SHORT)["iterations_per_us"].number()
    clock = tmp_path / "clock.so"
    command = ["cc", "-shared", "-fPIC", f"-DFINE_TIMES={fine_times}", "-xc", "-", "-o", str(clock)]
    subprocess.run(command, input=COARSE_CLOCK, text=True, check=True)
    monkeypatch.setenv("LD_PRELOAD", str(clock))
    # A tick of 4 ms may be missing of the 40 ms that a try takes at least, and the machine may be busy.
    assert speed / 2 < tool.run(*SHORT)["iterations_per_us"].number() < speed * 2


def test_the_summary_is_that_of_the_samples(tool: Tool, tmp_path: Path) -> None:
    path = tmp_path / "samples"
    result = tool.run(*SHORT, "--rate", "300", "--helpers", "1", "--samples", str(path))
    sojourns = sorted(sample.sojourn_ns for sample in read_samples(path))
    summary = result["latency_ns"]
    assert summary["count"].integer() == len(sojourns)
    assert summary["min"].integer() == sojourns[0]
    assert summary["max"].integer() == sojourns[-1]
    assert summary["mean"].number() == pytest.approx(statistics.fmean(sojourns))
    assert summary["p50"].integer() == sojourns[(len(sojourns) + 1) // 2 - 1]


def test_a_service_slower_than_its_arrivals_shows_growing_sojourn_times(tool: Tool, tmp_path: Path) -> None:
    path = tmp_path / "samples"
    result = tool.run(
        *("service", "--seconds", "1", "--warmup", "0", "--rate", "300", "--helpers", "0"),
        *("--serial-us", "6000", "--distribution", "fixed", "--samples", str(path)),
    )
    sojourns = [sample.sojourn_ns for sample in read_samples(path)]
    third = len(sojourns) // 3
    # 1.8 times the capacity: each request waits 2.7 ms longer than the one before, on a fast machine as on a
    # slow one, and what holds up one request holds up all that follow. From third to third that is 0.5 s.
    assert statistics.fmean(sojourns[-third:]) - statistics.fmean(sojourns[:third]) > 300_000_000
    assert max(sojourns) > 300_000_000
    assert result["seconds_measured"].number() > 1.3
    assert result["completed"].integer() == result["arrivals_scheduled"].integer()


def test_work_is_cpu_time_of_the_asked_length(tool: Tool) -> None:
    result = tool.run(*SHORT, "--distribution", "fixed", "--serial-us", "4000", "--helper-us", "2000")
    completed = result["completed"].integer()
    threads = result["cpu"]["threads"]
    assert threads["main"].number() == pytest.approx(completed * 4e-3, rel=0.6)
    assert threads["helper-1"].number() == pytest.approx(completed * 2e-3, rel=0.6)


def test_main_works_as_long_as_a_helper_if_it_joins_them(tool: Tool) -> None:
    asked = ("--distribution", "fixed", "--serial-us", "0", "--helper-us", "2000", "--helpers", "1")
    threads = tool.run(*SHORT, *asked, "--joins")["cpu"]["threads"]
    assert threads["main"].number() == pytest.approx(threads["helper-0"].number(), rel=0.3)


def test_the_slow_helper_works_longer(tool: Tool) -> None:
    threads = tool.run(*SHORT, "--imbalance", "5", "--distribution", "fixed")["cpu"]["threads"]
    assert threads["helper-0"].number() > 2 * threads["helper-1"].number()


def test_background_work_is_counted_and_open_loop(tool: Tool) -> None:
    result = tool.run(
        *SHORT,
        *("--background", "2", "--background-rate", "40", "--background-burst-us", "1500"),
        *("--background-wakes", "logger"),
    )
    background = result["background"]
    assert 30 <= background["bursts"].integer() <= 140  # 80 expected
    assert background["logger_wakes"].integer() >= background["bursts"].integer()
    assert background["cpu_s"].number() > 0.02
    assert {"main", "bg-0", "bg-1", "logger"} <= set(result["cpu"]["threads"].names())


def test_background_that_begins_later_does_nothing_before(tool: Tool) -> None:
    background = ("--background", "2", "--background-rate", "200", "--background-burst-us", "100")
    whole = tool.run(*SHORT, *background)["background"]["bursts"].integer()
    never = tool.run(*SHORT, *background, "--background-from", "5")["background"]
    assert (never["bursts"].integer(), whole > 0) == (0, True)


def test_two_actors_share_one_turn_and_wake_each_other(start: Callable[..., Running]) -> None:
    run = start(*SHORT, "--variant", "pretend", "--helper-us", "100", "--seconds", "500")
    run.work(0.3)
    pid, tids = run.ready["pid"].integer(), run.ready["threads"]
    status = [
        Path(f"/proc/{pid}/task/{tids[name].integer()}/status").read_text(encoding="ascii")
        for name in ("actor-0", "actor-1")
    ]
    sleeps = [int(text.split("\nvoluntary_ctxt_switches:")[1].split()[0]) for text in status]
    assert min(sleeps) > 500
    threads = run.terminate()["cpu"]["threads"]
    assert threads["actor-0"].number() == pytest.approx(threads["actor-1"].number(), rel=0.4)


def test_actors_that_alternate_compute_half_of_the_time_and_only_then(tool: Tool) -> None:
    alternating = ("--variant", "pretend", "--alternate-s", "0.5")
    threads = tool.run(*SHORT, *alternating)["cpu"]["threads"]
    assert all(0.02 < threads[name].number() < 0.65 for name in ("actor-0", "actor-1"))
    waiting = tool.run(*SHORT, "--variant", "pretend", "--alternate-s", "60")["cpu"]["threads"]
    assert all(waiting[name].number() < 0.1 for name in ("actor-0", "actor-1"))


def test_pinned_threads_keep_to_one_cpu_each_in_turn(start: Callable[..., Running]) -> None:
    run = start(*SHORT, "--helpers", "3", "--background", "1", "--pin-from", "1")
    tids = run.ready["threads"]
    allowed = sorted(os.sched_getaffinity(0))
    names = ("main", "helper-0", "helper-1", "helper-2", "bg-0")
    places = [os.sched_getaffinity(tids[name].integer()) for name in names]
    assert places == [{allowed[place % len(allowed)]} for place in range(1, 6)]
    run.end()


def test_threads_bear_the_announced_names(start: Callable[..., Running]) -> None:
    run = start(*SHORT, "--background", "1", "--background-wakes", "peer", "--helpers", "11")
    tids = run.ready["threads"]
    pid = run.ready["pid"].integer()
    for name in tids.names():
        comm = Path(f"/proc/{pid}/task/{tids[name].integer()}/comm").read_text(encoding="ascii")
        assert comm.strip() == name
    assert len(os.listdir(f"/proc/{pid}/task")) == len(tids.names())
    assert {"main", "helper-0", "helper-10", "bg-0", "peer-0"} <= set(tids.names())
    run.end()


def test_the_ready_file_appears_whole_and_the_start_is_the_asked_one(tool: Tool, tmp_path: Path) -> None:
    path = tmp_path / "ready"
    for lead_ns in (700_000_000, 7_000_000_000, 70_000_000_000):  # longer if it is refused as past
        begin = time.monotonic_ns() + lead_ns
        done = tool.call(*SHORT, "--ready", str(path), "--start-at-ns", str(begin))
        if "--start-at-ns: passed" not in done.stderr:
            break
    assert done.returncode == 0, done.stderr
    result = Node(json.loads(done.stdout))
    ready = Node(json.loads(path.read_text(encoding="ascii")))
    assert ready["start_at_ns"].integer() == result["start_at_ns"].integer() == begin
    assert ready["ready"].value is True
    assert time.monotonic_ns() >= begin + 1_200_000_000
    assert [file.name for file in tmp_path.iterdir()] == ["ready"]


def test_a_ready_file_in_the_place_of_a_device_or_pipe_is_refused(tool: Tool, tmp_path: Path) -> None:
    path = tmp_path / "ready"
    os.mkfifo(path)
    done = tool.call(*SHORT, "--ready", str(path))
    assert done.returncode == 2
    assert done.stderr == f"dasec-load: --ready: must be a regular file or a new one, got '{path}'\n"
    assert path.is_fifo()


def test_a_start_in_the_past_is_refused(tool: Tool) -> None:
    done = tool.call(*SHORT, "--start-at-ns", "1")
    assert done.returncode == 1
    assert done.stderr.startswith("dasec-load: --start-at-ns: passed ")


@pytest.mark.parametrize(
    "shape", [["--feeder"], ["--feeder", "--answers"], ["--variant", "pipeline"], ["--variant", "convoy"], []]
)
def test_sigterm_ends_early_with_a_valid_result(
    start: Callable[..., Running], tmp_path: Path, shape: list[str]
) -> None:
    path = tmp_path / "samples"
    run = start(
        *("service", "--seconds", "500", "--warmup", "0.1", "--rate", "100", "--background", "1"),
        *("--samples", str(path), *shape),
    )
    run.work(0.2)  # the warm-up brings 10 requests, of 2 ms each
    result = run.terminate()
    assert result["interrupted"].value is True
    assert 0 < result["completed"].integer() < result["arrivals_scheduled"].integer()
    assert total(result) == result["arrivals_scheduled"].integer()
    assert len(read_samples(path)) == result["completed"].integer()
    assert result["seconds_measured"].number() < 400


def test_a_run_stopped_within_the_warm_up_has_a_result_without_latency(start: Callable[..., Running]) -> None:
    result = start("service", "--seconds", "5", "--warmup", "50").terminate()
    assert result["latency_ns"]["count"].integer() == 0
    assert result["latency_ns"]["p99"].value is None
    assert result["seconds_measured"].number() == 0


def test_a_dead_feeder_is_a_failure_and_no_hang(start: Callable[..., Running]) -> None:
    run = start("service", "--feeder", "--seconds", "30", "--rate", "5")
    os.kill(run.ready["feeder_pid"].integer(), 9)
    _, err = run.process.communicate(timeout=PATIENCE_S)
    assert run.process.returncode == 1
    assert err == "dasec-load: the feeder ended before its schedule\n"
