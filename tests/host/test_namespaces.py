"""The journal of a killed daemon, met in another pid or time namespace."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from dasec.errors import ExitStatus
from guests.waiting import wait_for
from tests.kin import children

from ..unit.service.command import configuration, dasec
from .daemons import PAPER, daemon, knobs, run

pytestmark = pytest.mark.host

PID = ("unshare", "--pid", "--fork", "--mount-proc")
TIME = ("unshare", "--time", "--boottime", "100000", "--fork")


@pytest.mark.parametrize(("kind", "enter"), [("pid", PID), ("time", TIME)])
def test_what_a_killed_daemon_left_outlives_a_restore_and_a_daemon_of_another_namespace(
    kind: str, enter: tuple[str, ...], tmp_path: Path, busy: list[int]
) -> None:
    if not Path(f"/proc/self/ns/{kind}").exists():
        pytest.skip(f"this kernel has no {kind} namespaces")
    before, state = knobs(busy), tmp_path / "state"
    config = configuration(tmp_path, PAPER, f"pids = [{busy[0]}]")
    with daemon(tmp_path, config) as process:
        wait_for(lambda: knobs(busy) != before)
        (keeper,) = children(process.pid)
        process.send_signal(signal.SIGSTOP)  # it must not start another keeper
        for pid in (keeper, process.pid):
            os.kill(pid, signal.SIGKILL)
        process.wait()
    held, journal = knobs(busy), (state / "journal").read_bytes()
    assert held != before
    told = [*enter, *run(config, state)]
    options = told.index("run")
    for words in (["restore"], ["restore", "--force"], ["verify"]):
        command = [*told[:options], *words, "--directory", str(state)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == ExitStatus.FAILED, done
        assert done.stdout.count(f"journal of {kind} namespace") == 1, done
    another = subprocess.run([*told, "--periods", "20"], capture_output=True, text=True, check=False)
    assert another.returncode == ExitStatus.DONE, another
    assert f"journal of {kind} namespace" in another.stderr
    assert ((state / "journal").read_bytes(), knobs(busy)) == (journal, held)
    assert dasec("restore", "--directory", state).status == ExitStatus.DONE
    assert knobs(busy) == before
    assert not (state / "journal").exists()
