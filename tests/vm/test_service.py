"""The installed package where systemd has booted: start, reload, SIGKILL, watchdog, upgrade, purge."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from dasec.lab.load_tool import find_tool
from guests.qemu import Qemu
from guests.throw_away import CgroupLayout, debian_kernel, run_in_guest
from tests.conftest import REPOSITORY, refuse
from tests.vm import systemd
from tests.vm.errands import GUEST_TIMEOUT_S
from tests.vm.test_kernels_and_layouts import CONSOLE_TAIL, EEVDF

HERE = REPOSITORY / "tests/vm"


@pytest.mark.vm
@pytest.mark.slow
@pytest.mark.timeout(GUEST_TIMEOUT_S + 180)
def test_systemd_takes_the_installed_service_through_its_life(deb: Path, qemu: Qemu, tmp_path: Path) -> None:
    missing = systemd.missing()
    if missing:
        refuse(f"needs {', '.join(missing)}")
    subprocess.run(["unshare", "--mount", "bash", HERE / "preinstall.sh", deb, tmp_path], check=True)
    job = f"bash {HERE}/service.sh {tmp_path} {find_tool()}"
    run = run_in_guest(
        debian_kernel(EEVDF),
        CgroupLayout.V2,
        job,
        tmp_path,
        GUEST_TIMEOUT_S,
        init=systemd.INIT,
        machine=systemd.machine(qemu),
    )
    assert run.exit_status == 0, run.console[-CONSOLE_TAIL:]
