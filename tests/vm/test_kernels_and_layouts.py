"""The host tests of this kernel again, on Debian's kernels and every cgroup layout, in QEMU guests.

Timing means nothing under TCG, so tests marked `timing` stay out; everything else that
holds here must hold there: the contract of the mainline host, what is restored, what is refused.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import REPOSITORY
from tests.vm.guest import CgroupLayout, GuestRun, debian_kernel, run_in_guest

GUEST_TIMEOUT_S = 420
CONSOLE_TAIL = 6000

EEVDF = "linux-image-6.12-amd64"
CFS = "linux-image-amd64"
"""Debian 12's own kernel: 6.1, the last series with CFS."""

PYTEST = (
    f"cd {REPOSITORY} && DASEC_CI=1 PYTHONDONTWRITEBYTECODE=1"
    " .venv/bin/python -m pytest -q --color=no -p no:cacheprovider -p no:randomly"
    " -m 'not timing' --timeout 200"
)


def guest(kernel: str, layout: CgroupLayout, command: str, scratch: Path) -> GuestRun:
    return run_in_guest(debian_kernel(kernel), layout, command, scratch, GUEST_TIMEOUT_S)


@pytest.mark.vm
@pytest.mark.timeout(GUEST_TIMEOUT_S + 120)
@pytest.mark.parametrize("layout", [CgroupLayout.V2, CgroupLayout.HYBRID, CgroupLayout.V1])
def test_the_mainline_host_keeps_its_contract_on_debians_eevdf_kernel(
    layout: CgroupLayout, tmp_path: Path
) -> None:
    run = guest(EEVDF, layout, f"{PYTEST} tests/contract tests/host", tmp_path)
    assert run.exit_status == 0, run.console[-CONSOLE_TAIL:]


@pytest.mark.vm
@pytest.mark.timeout(GUEST_TIMEOUT_S + 120)
def test_a_kernel_without_the_latency_knob_is_managed_with_weights_and_affinity_alone(tmp_path: Path) -> None:
    run = guest(CFS, CgroupLayout.V2, f"{PYTEST} tests/contract", tmp_path)
    assert run.exit_status == 0, run.console[-CONSOLE_TAIL:]
