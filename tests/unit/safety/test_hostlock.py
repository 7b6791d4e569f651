"""One daemon a host, whatever its directory."""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path

import pytest

from dasec.safety.host_lock import NAME, HostLock
from dasec.safety.journal.directory import JournalBusy


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


def take(journal: Path, home: Path) -> HostLock:
    return HostLock.take(journal, home=home, wait_s=0.0)


def test_one_daemon_has_it_whatever_the_directories_and_the_next_after_it(tmp_path: Path, home: Path) -> None:
    first = take(tmp_path / "a", home)
    with pytest.raises(JournalBusy, match=rf"another daemon, process {os.getpid()} .*: stop that one first"):
        take(tmp_path / "b", home)
    first.close()
    take(tmp_path / "b", home).close()


def test_nobody_else_can_open_what_is_locked(tmp_path: Path, home: Path) -> None:
    take(tmp_path / "a", home).close()
    assert [stat.S_IMODE(path.stat().st_mode) for path in (home, home / NAME)] == [0o700, 0o600]
    (home / NAME).unlink()
    (home / NAME).symlink_to(tmp_path / "theirs")
    with pytest.raises(OSError, match="symbolic"):
        take(tmp_path / "a", home)
    assert not (tmp_path / "theirs").exists()


def test_the_next_daemon_learns_where_the_last_one_had_its_journal_if_that_was_elsewhere(
    tmp_path: Path, home: Path
) -> None:
    for name, former in (("a", None), ("a", None), ("b", tmp_path / "a"), ("b", None)):
        (tmp_path / name).mkdir(exist_ok=True)
        lock = take(tmp_path / name, home)
        assert lock.former() == former
        lock.note()
        lock.close()


def test_a_lock_that_was_removed_is_taken_again_unless_another_daemon_was_quicker(
    tmp_path: Path, home: Path
) -> None:
    first = take(tmp_path / "a", home)
    shutil.rmtree(home)
    first.ensure()
    with pytest.raises(JournalBusy):
        take(tmp_path / "b", home)
    shutil.rmtree(home)
    second = take(tmp_path / "b", home)
    with pytest.raises(JournalBusy):
        first.ensure()
    second.close()
    first.ensure()
    first.close()
