"""A guest is up with all of its vCPUs, and ends with whoever started it, however that ends."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from dasec.lab.kit.process import descendants
from guests.bare.client import MOST_CPUS
from guests.bare.machine import NotUpError, running
from guests.bare.words import Accelerator
from guests.waiting import gone, wait_for

pytestmark = pytest.mark.vm

ALONE = """
import time
from guests.bare.machine import running
from guests.bare.words import Accelerator
with running(Accelerator.TCG, 1) as guest:
    print(guest.pid, flush=True)
    time.sleep(3600)
"""


def test_qemu_does_not_outlive_who_started_it_and_was_killed(repository: Path, tmp_path: Path) -> None:
    command, files = [sys.executable, "-c", ALONE], {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen(command, cwd=repository, env=files, stdout=subprocess.PIPE) as starter:
        assert starter.stdout is not None
        qemu = int(starter.stdout.readline())
        starter.kill()
        wait_for(lambda: gone(qemu))


def test_a_guest_of_which_a_vcpu_is_missing_is_none() -> None:
    with (
        pytest.raises(NotUpError, match=f"^{MOST_CPUS} of {MOST_CPUS + 1} vCPUs have come up$"),
        running(Accelerator.TCG, MOST_CPUS + 1),
    ):
        pass


def test_who_shows_a_guest_and_is_told_to_stop_says_so_and_leaves_none(repository: Path) -> None:
    command = [sys.executable, "-m", "guests.bare", "background=15", "rounds_per_us=100000000"]
    with subprocess.Popen(
        command, cwd=repository, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    ) as showing:
        wait_for(lambda: len(list(descendants(showing.pid))) > 1)
        below = [pid for pid in descendants(showing.pid) if pid != showing.pid]
        showing.terminate()
        _, said = showing.communicate()
        assert (showing.returncode, said) == (
            1,
            b"guests.bare: interrupted: everything it had started is gone\n",
        )
    wait_for(lambda: all(map(gone, below)))
