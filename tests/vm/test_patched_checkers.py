"""KASAN, lockdep, kmemleak, KCSAN while our files are read, written and stressed. Slow: two more kernels."""

from __future__ import annotations

from pathlib import Path

import pytest

from guests.boot import GuestRun
from guests.counted import COUNTED, PARALLEL, parse, run_jobs
from guests.qemu import Qemu
from tests.vm.checkers import alive, complaints, other_than_races, races, races_of_ours
from tests.vm.conftest import CONSOLE_TAIL, DEBUG_TIMEOUT_S, build_kernel

pytestmark = [pytest.mark.vm, pytest.mark.slow, pytest.mark.timeout(3 * DEBUG_TIMEOUT_S)]

JOBS = ("lifecycle", "permissions", "refusals", "wakes", "long-stress", "fuzz")
ROOM_FOR_REPORTS = "norandmaps log_buf_len=8M"
ATTENTIVE = f"{ROOM_FOR_REPORTS} kcsan.skip_watch=400 kcsan.udelay_task=400 kcsan.udelay_interrupt=100"
"""Ten times as many accesses watched as by default, each for five times as long: TCG is slow."""


def booted(
    qemu: Qemu, initramfs: Path, variant: str, clock: tuple[str, ...], options: str, *more: str
) -> GuestRun:
    jobs = (*more, *JOBS)
    run = run_jobs(qemu, build_kernel(variant), initramfs, 2, jobs, DEBUG_TIMEOUT_S, clock, options)
    assert run.exit_status == 0, run.console[-CONSOLE_TAIL:]
    assert [job.exit_status for job in parse(run.console).values()] == [0] * len(jobs)
    return run


def test_the_checkers_of_memory_and_of_locks_find_nothing(qemu: Qemu, initramfs: Path) -> None:
    run = booted(qemu, initramfs, "--debug", COUNTED, ROOM_FOR_REPORTS)
    assert complaints(run.console) == ()
    at_work = alive(run.console)
    assert at_work["lockdep debug_locks"] == "1", "lockdep switched itself off"
    assert "kmemleak scan 2" in at_work
    assert {job.tainted for job in parse(run.console).values()} == {0}


def test_the_checker_of_data_races_finds_none_of_ours_and_one_that_is_known(
    qemu: Qemu, initramfs: Path
) -> None:
    # CPUs that run at the same time: counted ones take turns, and nobody is there while one watches.
    run = booted(qemu, initramfs, "--kcsan", PARALLEL, ATTENTIVE, "race")
    said = complaints(run.console)
    assert races_of_ours(said) == ()
    assert other_than_races(said) == ()
    assert any("proc_pid_schedstat" in report[0] for report in races(said)), "the detector sleeps"
