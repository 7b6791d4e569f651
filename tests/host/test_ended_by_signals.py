"""What measures on a host and is told to stop leaves nothing that it started."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from dasec.errors import ExitStatus
from dasec.linux import cgroupfs
from dasec.safety.groups import abandoned_probes
from guests.waiting import PATIENCE_S, wait_for
from tests.conftest import refuse

pytestmark = pytest.mark.host

SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]


def started(folder: Path) -> list[int]:
    """Who was born with this folder for temporary files, at any remove."""
    wanted = f"\0TMPDIR={folder}\0".encode()
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if wanted in b"\0" + (process / "environ").read_bytes():
                found.append(int(process.name))
        except OSError:
            continue
    return found


def stopped(folder: Path, number: signal.Signals, when: Callable[[], bool], *command: str) -> list[str]:
    """Its errors when this signal came at that time."""
    with tempfile.TemporaryFile("w+") as errors:  # no pipe: who is left over would keep it open
        process = subprocess.Popen(
            [sys.executable, "-m", "dasec", *command],
            env={**os.environ, "TMPDIR": str(folder)},
            stdout=subprocess.DEVNULL,
            stderr=errors,
        )
        wait_for(lambda: when() or process.poll() is not None)
        process.send_signal(number)
        status = process.wait(PATIENCE_S)
        left = started(folder)
        for pid in left:
            os.kill(pid, signal.SIGKILL)
        errors.seek(0)
        said = errors.read()
    assert (status, left) == (ExitStatus.FAILED, []), said
    return said.splitlines()


@pytest.mark.parametrize("number", SIGNALS)
def test_an_interrupted_benchmark_leaves_no_daemon_no_load_and_no_folder(
    tmp_path: Path, number: signal.Signals
) -> None:
    def measures() -> bool:
        return any(tmp_path.glob("dasec-bench-*/record"))

    errors = stopped(tmp_path, number, measures, "bench", "overhead", "--vcpus", "2", "--periods", "5000")
    assert errors == ["dasec: bench overhead: interrupted: everything it had started is gone"]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("number", SIGNALS)
def test_an_interrupted_trial_of_a_program_leaves_neither_it_nor_its_group(
    tmp_path: Path, number: signal.Signals
) -> None:
    if len(os.sched_getaffinity(0)) < 2:
        refuse("needs two CPUs")
    ready = tmp_path / "ready"
    script = f"sleep 300 & touch {ready}; wait"
    errors = stopped(tmp_path, number, ready.exists, "classify", "--cpus", "1", "sh", "-c", script)
    assert errors[-1] == "dasec: classify: interrupted: everything it had started is gone"
    assert list(abandoned_probes(cgroupfs.find_hierarchy())) == []
