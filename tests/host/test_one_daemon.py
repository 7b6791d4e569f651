"""One daemon on a host, in whatever directory, and it keeps what is its own."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from dasec.errors import ExitStatus
from dasec.hosts.probe.dummy import sleeper
from dasec.linux import procfs, schedattr
from dasec.linux.cgroupfs import find_hierarchy
from dasec.safety.journal.journal import boot_ticks
from guests.waiting import wait_for
from tests.kin import children

from ..unit.service.command import configuration, dasec
from .daemons import PAPER, TOLD, daemon, knobs

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
        kill_with_keeper(process)
    assert knobs(busy) != before
    second = dasec("run", "--config", config, "--periods", "1", "--directory", tmp_path / "other")
    assert second.status == ExitStatus.DONE
    assert [line for line in second.errors if f"left in {tmp_path / 'state'}" in line], second.errors
    assert knobs(busy) == before


def test_a_group_that_a_killed_daemon_left_and_cannot_go_is_said_at_the_start_and_at_the_stop(
    tmp_path: Path, busy: list[int]
) -> None:
    hierarchy, state = find_hierarchy(), tmp_path / "state"
    config = configuration(tmp_path, TOLD, f"pids = [{busy[0]}]")
    with sleeper() as stranger:
        born = procfs.read_stat(stranger, stranger).start_ticks
        wait_for(lambda: boot_ticks() > born + 1)  # else it might have been born in the group
        with daemon(tmp_path, config) as process:
            wait_for(lambda: "/dasec-" in hierarchy.group_of(busy[0], busy[-1]))
            ours = hierarchy.group_of(busy[0], busy[-1])
            hierarchy.move(stranger, ours)
            kill_with_keeper(process)
        directory = hierarchy.directory(ours)
        line = f"left alone: {directory}: somebody else put thread {stranger} there"
        second = dasec("run", "--config", config, "--periods", "1", "--directory", state)
        assert second.status == ExitStatus.DONE
        assert len([one for one in second.errors if one.endswith(line)]) == 2, second.errors
        assert Path(directory).is_dir()
    third = dasec("run", "--config", config, "--periods", "1", "--directory", state)
    assert [one for one in third.errors if "left alone" in one] == []
    assert (Path(directory).exists(), names_in(state)) == (False, [])


def test_a_slice_of_a_killed_daemon_that_waits_for_its_thread_is_said_at_the_start(
    tmp_path: Path, busy: list[int]
) -> None:
    before, last = knobs(busy), busy[-1]
    config = configuration(tmp_path, TOLD.replace("own_cgroups = true\n", ""), f"pids = [{busy[0]}]")
    with daemon(tmp_path, config) as process:
        wait_for(lambda: schedattr.get(last).slice_ns != before[-1][0])
        kill_with_keeper(process)
    os.sched_setscheduler(last, os.SCHED_FIFO, os.sched_param(1))
    second = dasec("run", "--config", config, "--periods", "1", "--directory", tmp_path / "state")
    os.sched_setscheduler(last, os.SCHED_OTHER, os.sched_param(0))
    line = "held until it is fair again"
    assert [one for one in second.errors if "not put back yet: " in one and one.endswith(line)], second.errors
    assert dasec("restore", "--directory", tmp_path / "state").status == ExitStatus.DONE
    assert knobs(busy) == before


def removed(directory: Path) -> bool:
    """False: the daemon has put another file there meanwhile."""
    with contextlib.suppress(OSError):
        shutil.rmtree(directory)
        return True
    return False


def kill_with_keeper(process: subprocess.Popen[str]) -> None:
    (keeper,) = children(process.pid)
    process.send_signal(signal.SIGSTOP)  # it must not start another keeper
    for pid in (keeper, process.pid):
        os.kill(pid, signal.SIGKILL)
    process.wait()


def test_a_daemon_whose_directory_is_removed_has_it_again_at_its_next_look(
    tmp_path: Path, busy: list[int]
) -> None:
    before, state = knobs(busy), tmp_path / "state"
    config = configuration(tmp_path, PAPER, f"pids = [{busy[0]}]")
    with daemon(tmp_path, config) as process:
        wait_for(lambda: knobs(busy) != before)
        wait_for(lambda: removed(state))
        wait_for(lambda: (state / "journal").exists())
        second = dasec("run", "--config", config, "--periods", "1", "--directory", state)
        assert (second.status, len(second.errors)) == (ExitStatus.HOST, 1)
        process.kill()
        process.wait()
        wait_for(lambda: knobs(busy) == before)
