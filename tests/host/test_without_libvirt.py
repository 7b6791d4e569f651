"""Domains asked for where there is no libvirt, or no right to its files: one line, and the rest goes on."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from dasec.errors import ExitStatus

from ..unit.service.command import as_nobody, configuration, dasec

pytestmark = pytest.mark.host

ALSO_DOMAINS = 'period_ms = 20\n[[workload]]\nname = "vm"\nlibvirt = "*"\n'
EMPTY = "mount -t tmpfs tmpfs /run"
QEMU = "mkdir -p /run/libvirt/qemu"


@pytest.mark.parametrize(
    ("there", "line"),
    [
        (EMPTY, "libvirt: /run/libvirt/qemu is not there: install and start libvirtd or virtqemud"),
        (
            f"{EMPTY}; {QEMU}; chmod 700 /run/libvirt/qemu",
            "libvirt: /run/libvirt/qemu: Permission denied: run as root",
        ),
        (
            f"{EMPTY}; {QEMU}; (umask 077; touch /run/libvirt/qemu/a.xml)",
            "libvirt: /run/libvirt/qemu/a.xml: Permission denied: run as root",
        ),
    ],
    ids=["not installed or not running", "no right to the directory", "no right to the files"],
)
def test_one_line_says_what_is_wrong_with_libvirt_and_other_workloads_are_managed(
    there: str, line: str, open_folder: Path
) -> None:
    with subprocess.Popen([*as_nobody(), "sleep", "60"]) as sleeper:
        config = configuration(open_folder, ALSO_DOMAINS, f"pids = [{sleeper.pid}]")
        answer = dasec(
            *("run", "--dry-run", "--config", config, "--periods", "10", "--record", open_folder / "r"),
            before=("unshare", "--mount", "sh", "-c", f'{there}; exec "$@"', "sh", *as_nobody()),
        )
        sleeper.kill()
    assert answer.status == ExitStatus.DONE, answer.errors
    assert len([said for said in answer.errors if "libvirt: " in said]) == 1, answer.errors
    assert any(line in said for said in answer.errors)
    assert "sleep" in (open_folder / "r").read_text()
