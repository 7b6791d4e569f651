"""Our patched kernel in a QEMU guest: the contract of its host, and the whole daemon end to end.

What does not depend on time must hold there as on any other kernel; what a knob does to
latencies and shares is measured elsewhere, in a guest whose clock repeats.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.vm.guest import CgroupLayout, GuestKernel, run_in_guest
from tests.vm.test_kernels_and_layouts import CONSOLE_TAIL, CONTRACT, GUEST_TIMEOUT_S, PYTEST

BUILD_TIMEOUT_S = 1500
"""A cold cache: 522 CPU seconds on a quiet machine, and others may be at work."""

OF_THE_PATCHED_HOST = f"-rs -k patched {CONTRACT} tests/host/test_patched.py"


@pytest.mark.vm
@pytest.mark.timeout(BUILD_TIMEOUT_S + GUEST_TIMEOUT_S)
@pytest.mark.parametrize("layout", [CgroupLayout.V2, CgroupLayout.V1])
def test_the_patched_kernel_is_controlled_and_restored_whatever_its_cgroup_layout(
    layout: CgroupLayout, patched_kernel: Path, tmp_path: Path
) -> None:
    kernel = GuestKernel("patched", patched_kernel, ())
    run = run_in_guest(kernel, layout, f"{PYTEST} {OF_THE_PATCHED_HOST}", tmp_path, GUEST_TIMEOUT_S)
    assert run.exit_status == 0, run.console[-CONSOLE_TAIL:]
    skipped = [line for line in run.console.splitlines() if "no /proc/PID/dasec" in line]
    assert not skipped, "the guest's kernel is without the patch"
