"""The package on Debian 13 with its own systemd: install, enable, manage, a reboot, a power cut, purge."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from dasec.lab.load_tool import find_tool
from guests.qemu import Qemu
from guests.throw_away import CgroupLayout, debian_kernel, run_in_guest
from tests.conftest import REPOSITORY, refuse
from tests.vm import systemd, trixie
from tests.vm.errands import GUEST_TIMEOUT_S
from tests.vm.test_kernels_and_layouts import CONSOLE_TAIL, EEVDF

HERE = REPOSITORY / "tests/vm"
ORDERLY = "/bin/systemctl reboot"
POWER_CUT = "/bin/sh -c 'sleep 1; echo b >/proc/sysrq-trigger'"
"""Nothing is written back. The second is for the last line on the console."""

BOOTS = (
    ("before_reboot.sh", ORDERLY),
    ("after_reboot.sh", POWER_CUT),
    ("after_power_cut.sh", ORDERLY),
)
GIVEN = ("steps.sh", "traces.sh", "left_journal.py", *(job for job, _ in BOOTS))


@pytest.fixture
def given(deb: Path, tmp_path: Path) -> Path:
    """What the guest gets beside its disk."""
    folder = tmp_path / "given"
    folder.mkdir()
    for name in GIVEN:
        shutil.copy(HERE / name, folder)
    shutil.copy(deb, folder / "dasec.deb")
    shutil.copy(find_tool(), folder / "dasec-load")
    return folder


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A Debian 13, which pytest does not keep."""
    missing = trixie.missing()
    if missing:
        refuse(f"needs {', '.join(missing)}")
    made = trixie.disk(tmp_path)
    yield made
    made.unlink()


@pytest.mark.vm
@pytest.mark.slow
@pytest.mark.timeout(len(BOOTS) * GUEST_TIMEOUT_S + 600)
def test_the_service_outlives_a_reboot_and_a_power_cut_of_a_debian_13_and_purges_without_a_trace(
    given: Path, disk: Path, qemu: Qemu, tmp_path: Path
) -> None:
    kernel = debian_kernel(EEVDF, trixie.MODULES)
    for job, leave in BOOTS:
        run = run_in_guest(
            kernel,
            CgroupLayout.V2,
            f"bash /mnt/{job}",
            tmp_path / job,
            GUEST_TIMEOUT_S,
            init=trixie.init(leave),
            machine=systemd.machine(qemu),
            root=trixie.root(disk, given),
        )
        assert run.exit_status == 0, run.console[-CONSOLE_TAIL:]
