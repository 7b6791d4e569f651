"""One daemon on a host, in whatever directory, and it keeps what is its own."""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path

import pytest

from dasec.errors import ExitStatus
from guests.waiting import wait_for
from tests.kin import children

from ..unit.service.command import configuration, dasec
from .daemons import PAPER, daemon, knobs

pytestmark = pytest.mark.host


def names_in(directory: Path) -> list[str]:
    """Without a file that the daemon is just replacing (linux/whole_file.py)."""
    return sorted(path.name for path in directory.iterdir() if path.suffix != ".new")


def test_a_second_daemon_is_refused_before_it_touches_anything_of_the_first(
    tmp_path: Path, busy: list[int]
) -> None:
    record, textfile, state = tmp_path / "r", tmp_path / "dasec.prom", tmp_path / "state"
    metrics = f'[metrics]\ntextfile = "{textfile}"\n'
    config = configuration(tmp_path, PAPER + metrics, f"pids = [{busy[0]}]")
    with daemon(tmp_path, config, "--record", str(record)):
        wait_for(lambda: textfile.exists() and record.stat().st_size > 0)
        before = (record.stat().st_ino, names_in(tmp_path))
        for _ in range(2):
            second = dasec("run", "--config", config, "--record", record, "--directory", state)
            assert (second.status, len(second.errors)) == (ExitStatus.HOST, 1)
        assert (record.stat().st_ino, names_in(tmp_path)) == before
        assert dasec("explain", "a", "--directory", state).status == ExitStatus.DONE


def test_a_daemon_in_another_directory_is_refused_while_one_runs(tmp_path: Path, busy: list[int]) -> None:
    config = configuration(tmp_path, PAPER, f"pids = [{busy[0]}]")
    with daemon(tmp_path, config) as process:
        second = dasec("run", "--config", config, "--periods", "1", "--directory", tmp_path / "other")
        assert second.status == ExitStatus.HOST
        assert len(second.errors) == 1
        assert f"another daemon, process {process.pid} " in second.errors[0]


def test_a_daemon_puts_back_first_what_a_killed_one_left_in_another_directory(
    tmp_path: Path, busy: list[int]
) -> None:
    before = knobs(busy)
    config = configuration(tmp_path, PAPER, f"pids = [{busy[0]}]")
    with daemon(tmp_path, config) as process:
        wait_for(lambda: knobs(busy) != before)
        (keeper,) = children(process.pid)
        process.send_signal(signal.SIGSTOP)  # it must not start another keeper
        for pid in (keeper, process.pid):
            os.kill(pid, signal.SIGKILL)
        process.wait()
    assert knobs(busy) != before
    second = dasec("run", "--config", config, "--periods", "1", "--directory", tmp_path / "other")
    assert second.status == ExitStatus.DONE
    assert [line for line in second.errors if f"left in {tmp_path / 'state'}" in line], second.errors
    assert knobs(busy) == before


def test_a_daemon_whose_directory_is_removed_has_it_again_at_its_next_look(
    tmp_path: Path, busy: list[int]
) -> None:
    before, state = knobs(busy), tmp_path / "state"
    config = configuration(tmp_path, PAPER, f"pids = [{busy[0]}]")
    with daemon(tmp_path, config) as process:
        wait_for(lambda: knobs(busy) != before)
        shutil.rmtree(state)
        wait_for(lambda: (state / "journal").exists())
        second = dasec("run", "--config", config, "--periods", "1", "--directory", state)
        assert (second.status, len(second.errors)) == (ExitStatus.HOST, 1)
        process.kill()
        process.wait()
        wait_for(lambda: knobs(busy) == before)
