"""Our patched kernel in a QEMU guest: the contract of its host, and the whole daemon end to end.

What does not depend on time must hold there as on any other kernel; what a knob does to
latencies and shares is measured elsewhere, in a guest whose clock repeats.
"""

from __future__ import annotations

import pytest

from guests.throw_away import CgroupLayout
from tests.ahead import Ahead
from tests.vm.errands import PATCHED, TestsRun
from tests.vm.test_kernels_and_layouts import CONSOLE_TAIL, CONTRACT

OF_THE_PATCHED_HOST = f"-rs {CONTRACT} tests/host/test_patched.py"
NO_DAEMON = "not (leave_no_trace or killed_daemon or probe_finds)"
"""A daemon of its own takes half a minute there, and does the same whatever the layout."""

RUNS = [
    TestsRun(PATCHED, CgroupLayout.V2, f"{OF_THE_PATCHED_HOST} -k patched"),
    TestsRun(PATCHED, CgroupLayout.V1, f"{OF_THE_PATCHED_HOST} -k 'patched and {NO_DAEMON}'"),
]

pytestmark = pytest.mark.vm


@pytest.mark.usefixtures("patched_kernel")
@pytest.mark.parametrize(
    "tests", [pytest.param(one, marks=pytest.mark.ahead.with_args(one), id=one.layout) for one in RUNS]
)
def test_the_patched_kernel_is_controlled_and_restored_whatever_its_cgroup_layout(
    tests: TestsRun, ahead: Ahead
) -> None:
    run = ahead.result(tests)
    assert run.exit_status == 0, run.console[-CONSOLE_TAIL:]
    skipped = [line for line in run.console.splitlines() if "no /proc/PID/dasec" in line]
    assert not skipped, "the guest's kernel is without the patch"
