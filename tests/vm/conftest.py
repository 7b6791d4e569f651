"""The patched kernel, built once, and its guests, booted once and ahead; many tests read what they said."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from guests.boot import GuestRun
from guests.built import HostCannotError, guest_image, patched_image
from guests.counted import Job, parse, run_jobs
from guests.qemu import Qemu, QemuMissingError, counting_qemu
from tests.ahead import Ahead
from tests.conftest import refuse
from tests.vm.errands import GUEST_TIMEOUT_S, JobsRun, packed_jobs

RUNS = {JobsRun(2): [pytest.mark.slow], JobsRun(4): []}
"""What two CPUs said was never anything else than what four did, and costs a minute of a core."""
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
    return packed_jobs(patched_kernel, tmp_path_factory.mktemp("jobs"))


@pytest.fixture(scope="session")
def boot(qemu: Qemu, initramfs: Path) -> Boot:
    """Boots a kernel with so many CPUs, runs these jobs, returns the console."""
    return lambda kernel, cpus, jobs: run_jobs(qemu, kernel, initramfs, cpus, jobs, GUEST_TIMEOUT_S)


@pytest.fixture(
    params=[
        pytest.param(run, marks=[pytest.mark.ahead.with_args(run), *marks], id=f"{run.cpus} CPUs")
        for run, marks in RUNS.items()
    ]
)
def said(request: pytest.FixtureRequest, ahead: Ahead, qemu: Qemu, patched_kernel: Path) -> dict[str, Job]:
    """What the jobs said at this many CPUs. Without QEMU and the kernel there is nothing to run them on."""
    run = ahead.result(request.param)
    assert run.exit_status == 0, run.console[-CONSOLE_TAIL:]
    return parse(run.console)
