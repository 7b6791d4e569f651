"""The series on CPU limits: its selftests, its stress under the kernel's checkers, and two short figures.

Slow: each is a kernel of its own.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from experiments.places.counted.machine import Task, measure
from experiments.studies.bandwidth.guest import machine_of
from guests.built import HostCannotError, next_image, patched_image
from guests.counted import COUNTED, PARALLEL, jobs_initramfs, parse, run_jobs
from guests.qemu import Qemu
from tests.conftest import refuse
from tests.vm.checkers import alive, complaints, other_than_races
from tests.vm.conftest import CONSOLE_TAIL, DEBUG_TIMEOUT_S
from tests.vm.errands import LEAK, OVERRUN

pytestmark = [pytest.mark.vm, pytest.mark.slow, pytest.mark.timeout(3 * DEBUG_TIMEOUT_S)]

CPUS = 4
SELFTESTS = ("limit_test", "churn_test")
ROOM_FOR_REPORTS = "norandmaps log_buf_len=8M"
OURS = re.compile(r"cfs_bandwidth|cfs_b_|cfs_rq_debt|cfs_rq_runtime")
"""In the names of the functions that the series changes or adds."""


def built(series: str, checkers: str = "") -> Path:
    """The kernel of that version with the series; where this host cannot build it, that is the answer."""
    try:
        if series == "6.1":
            return patched_image("--bandwidth" + checkers.replace("--", "-"))
        return next_image(*filter(None, [checkers]))
    except HostCannotError as cannot:
        refuse(str(cannot))
        raise


def console_of(
    qemu: Qemu, kernel: Path, place: Path, clock: tuple[str, ...], jobs: tuple[str, ...], options: str
) -> str:
    initramfs = jobs_initramfs(place, [kernel.parent / "selftests" / name for name in jobs])
    run = run_jobs(qemu, kernel, initramfs, CPUS, jobs, DEBUG_TIMEOUT_S, clock, options)
    assert run.exit_status == 0, run.console[-CONSOLE_TAIL:]
    return run.console


SERIES = pytest.mark.parametrize("series", ["6.1", "6.12"])


@SERIES
def test_its_selftests_pass_and_the_kernel_says_nothing(qemu: Qemu, tmp_path: Path, series: str) -> None:
    console = console_of(qemu, built(series), tmp_path, COUNTED, SELFTESTS, ROOM_FOR_REPORTS)
    for job in parse(console).values():
        assert re.findall(r"^not ok.*$", job.text, re.MULTILINE) == []
        assert (job.exit_status, job.tainted, job.complaints) == (0, 0, ())
    (churn,) = parse(console)["churn_test"].named("churn")
    for what in ("writes", "steps", "moves", "forks", "hotplugs", "flips"):
        assert churn.number(what) > 10, what


@SERIES
def test_the_checkers_of_memory_and_of_locks_find_nothing_under_stress(
    qemu: Qemu, tmp_path: Path, series: str
) -> None:
    kernel = built(series, "--debug")
    console = console_of(qemu, kernel, tmp_path, COUNTED, ("churn_test",), ROOM_FOR_REPORTS)
    assert complaints(console) == ()
    assert alive(console)["lockdep debug_locks"] == "1", "lockdep switched itself off"


@SERIES
def test_the_checker_of_data_races_finds_none_of_ours_under_stress(
    qemu: Qemu, tmp_path: Path, series: str
) -> None:
    kernel = built(series, "--kcsan")
    console = console_of(qemu, kernel, tmp_path, PARALLEL, ("churn_test",), ROOM_FOR_REPORTS)
    said = complaints(console)
    assert [line for line in said if OURS.search(line)] == []
    assert other_than_races(said) == ()


@SERIES
def test_what_is_lost_and_given_twice_without_the_series_is_neither_with_it(
    qemu: Qemu, tmp_path: Path, series: str
) -> None:
    built(series)
    runs = [f"{run}:on={on}" for run in (OVERRUN, LEAK) for on in (0, 7)]
    machine = machine_of(series, 3, tmp_path)
    said = measure(machine, Task("short figures", ",".join(runs), len(runs)), lambda: None).runs
    stops = [float(str(run["throttled_percent"])) for run in said[:2]]
    used = [float(str(run["cpus_used"])) for run in said[2:]]
    assert 40 <= stops[0] <= 70
    assert stops[1] < 10
    assert used[0] > 1.3
    assert used[1] < 1.1  # of two seconds: one period more than its due is a twentieth
