"""The host tests of this kernel again, on Debian's kernels and every cgroup layout, in QEMU guests.

Timing means nothing under TCG. What does not depend on it must hold there as it does here: the
contract of the mainline host, groups of our own, what is restored, and the whole daemon end to end.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import REPOSITORY
from tests.vm.guest import CgroupLayout, debian_kernel, run_in_guest

GUEST_TIMEOUT_S = 900
"""What ends a guest that hangs; no assertion is about it. Alone a guest takes 150 to 250 s; on a host whose
own host is short of CPUs more than 420 s were seen."""
CONSOLE_TAIL = 6000

EEVDF = "linux-image-6.12-amd64"
CFS = "linux-image-amd64"
"""Debian 12's own kernel: 6.1, the last series with CFS."""

PYTEST = (
    f"cd {REPOSITORY} && DASEC_CI=1 DASEC_GUEST=1 PYTHONDONTWRITEBYTECODE=1"
    " .venv/bin/python -m pytest -q --color=no -p no:cacheprovider -p no:randomly --timeout 400"
)
CONTRACT = "tests/contract"
GROUPS = (
    "tests/host/test_mainline_groups.py tests/host/test_mainline_rivals.py tests/host/test_probe.py"
    " tests/host/test_machine_scopes.py"
)
HOTPLUG = "tests/host/test_cpu_hotplug.py"
BPF = "tests/host/test_thread_counters.py"
END_TO_END = "tests/host/test_run.py::test_fifty_periods_are_recorded_replay_and_leave_no_trace"


def passes_in_guest(kernel: str, layout: CgroupLayout, tests: str, scratch: Path) -> None:
    run = run_in_guest(debian_kernel(kernel), layout, f"{PYTEST} {tests}", scratch, GUEST_TIMEOUT_S)
    assert run.exit_status == 0, run.console[-CONSOLE_TAIL:]


@pytest.mark.vm
@pytest.mark.timeout(GUEST_TIMEOUT_S + 120)
@pytest.mark.parametrize("layout", [CgroupLayout.V2, CgroupLayout.HYBRID, CgroupLayout.V1])
def test_an_eevdf_kernel_is_controlled_and_restored_whatever_its_cgroup_layout(
    layout: CgroupLayout, tmp_path: Path
) -> None:
    once = HOTPLUG if layout is CgroupLayout.V2 else ""  # CPUs are the same whatever the layout
    passes_in_guest(EEVDF, layout, f"{CONTRACT} {GROUPS} {once} {BPF} {END_TO_END}", tmp_path)


@pytest.mark.vm
@pytest.mark.timeout(GUEST_TIMEOUT_S + 120)
def test_a_kernel_without_the_latency_knob_is_managed_with_weights_and_affinity_alone(tmp_path: Path) -> None:
    # Whether the paper's rules find anything to do without slices depends on chance; static always does.
    passes_in_guest(CFS, CgroupLayout.V2, f"{CONTRACT} '{END_TO_END}[static]'", tmp_path)
