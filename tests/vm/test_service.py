"""The package on a machine that systemd has booted: start, reload, SIGKILL, watchdog, upgrade, purge."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from dasec.load import find_tool
from tests.conftest import REPOSITORY, refuse

from . import systemd
from .guest import CgroupLayout, debian_kernel, run_in_guest
from .test_kernels_and_layouts import CONSOLE_TAIL, EEVDF, GUEST_TIMEOUT_S


@pytest.mark.vm
@pytest.mark.timeout(GUEST_TIMEOUT_S + 120)
def test_systemd_takes_the_installed_service_through_its_life(deb: Path, tmp_path: Path) -> None:
    if not Path("/lib/systemd/systemd").exists() or shutil.which("taskset") is None:
        refuse("needs systemd and taskset")
    job = f"bash {REPOSITORY}/tests/vm/service.sh {deb} {find_tool()}"
    kernel = debian_kernel(EEVDF)
    run = run_in_guest(kernel, CgroupLayout.V2, job, tmp_path, GUEST_TIMEOUT_S, init=systemd.INIT)
    assert run.exit_status == 0, run.console[-CONSOLE_TAIL:]
