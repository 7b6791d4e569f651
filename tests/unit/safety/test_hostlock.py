"""One daemon a host, whatever its directory."""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path

import pytest

from dasec.safety.host_lock import NAME, HostLock, elsewhere
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


@pytest.mark.parametrize("thing", ["link", "directory", "full directory", "pipe", "socket"])
def test_what_has_its_name_and_is_no_file_makes_room(thing: str, tmp_path: Path, home: Path) -> None:
    """A daemon does not refuse to start because of it, and never writes to what a link leads to."""
    take(tmp_path / "a", home).close()
    (home / NAME).unlink()
    if thing == "link":
        (home / NAME).symlink_to(tmp_path / "theirs")
    elif thing == "pipe":
        os.mkfifo(home / NAME)
    elif thing == "socket":
        os.mknod(home / NAME, stat.S_IFSOCK | 0o600)
    else:
        (home / NAME).mkdir()
        if thing == "full directory":
            (home / NAME / "file").touch()
    lock = take(tmp_path / "a", home)
    lock.note()
    assert (home / NAME).read_text() == str(tmp_path / "a")
    assert not (tmp_path / "theirs").exists()
    lock.close()


def test_whoever_looks_where_the_journal_would_be_learns_where_it_is(tmp_path: Path, home: Path) -> None:
    assert elsewhere(home, home) is None
    (tmp_path / "a").mkdir()
    for name, told in ((home, None), (tmp_path / "a", tmp_path / "a")):
        lock = take(name, home)
        lock.note()
        assert elsewhere(home, home) == told
        lock.close()
    assert elsewhere(tmp_path / "b", home) is None


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
