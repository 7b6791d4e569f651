"""The patched kernel, built once, and its guests, booted once; many tests read what they said."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.conftest import refuse
from tests.vm.boot import GuestRun
from tests.vm.built import HostCannotError, guest_image, patched_image
from tests.vm.counted import Job, jobs_initramfs, parse, run_jobs
from tests.vm.qemu import Qemu, QemuMissingError, counting_qemu

JOBS = (
    *("granularity", "shares", "late", "wakes", "states", "lifecycle", "permissions", "refusals"),
    *("fuzz", "stress"),
)
SELFTESTS = ("interface_test", "behaviour_test")
CPU_COUNTS = (2, 4)
GUEST_TIMEOUT_S = 900
DEBUG_TIMEOUT_S = 3600
CONSOLE_TAIL = 4000

Boot = Callable[[Path, int, tuple[str, ...]], GuestRun]


def build_kernel(*options: str) -> Path:
    """Our patched kernel for guests; where this host cannot build it, that is the test's answer."""
    try:
        return patched_image(*options)
    except HostCannotError as cannot:
        refuse(str(cannot))
        raise


def build_image(name: str) -> Path:
    """That guest image of vm-images; where this host cannot build it, that is the test's answer."""
    try:
        return guest_image(name)
    except HostCannotError as cannot:
        refuse(str(cannot))
        raise


@pytest.fixture(scope="session")
def patched_kernel() -> Path:
    return build_kernel()


@pytest.fixture(scope="session")
def qemu() -> Qemu:
    try:
        return counting_qemu()
    except QemuMissingError as error:
        refuse(str(error))
        raise


@pytest.fixture(scope="session")
def initramfs(patched_kernel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Our jobs and the series' own selftests, which the build leaves beside the kernel."""
    selftests = [patched_kernel.parent / "selftests" / name for name in SELFTESTS]
    return jobs_initramfs(tmp_path_factory.mktemp("jobs"), selftests)


@pytest.fixture(scope="session")
def boot(qemu: Qemu, initramfs: Path) -> Boot:
    """Boots a kernel with so many CPUs, runs these jobs, returns the console."""
    return lambda kernel, cpus, jobs: run_jobs(qemu, kernel, initramfs, cpus, jobs, GUEST_TIMEOUT_S)


@pytest.fixture(scope="session")
def boots(boot: Boot, patched_kernel: Path) -> Iterator[dict[int, Future[GuestRun]]]:
    """Every job at 2 and at 4 CPUs, side by side: a counted guest uses one core of the host."""
    with ThreadPoolExecutor() as pool:
        yield {cpus: pool.submit(boot, patched_kernel, cpus, JOBS + SELFTESTS) for cpus in CPU_COUNTS}


@pytest.fixture(params=CPU_COUNTS, ids=lambda cpus: f"{cpus} CPUs")
def said(request: pytest.FixtureRequest, boots: dict[int, Future[GuestRun]]) -> dict[str, Job]:
    """What the jobs said at this many CPUs."""
    run = boots[request.param].result()
    assert run.exit_status == 0, run.console[-CONSOLE_TAIL:]
    return parse(run.console)
