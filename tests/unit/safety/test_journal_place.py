"""What lies in the journal's place and is none of ours: links, directories, other boots and versions."""

from __future__ import annotations

import contextlib
import os
import resource
import shutil
import stat
from pathlib import Path

import pytest

from dasec.knobs.knob import Write
from dasec.linux.namespaces import own_namespaces
from dasec.safety.journal import codec
from dasec.safety.journal import journal as journal_module
from dasec.safety.journal.directory import ASIDE, KEPT_ASIDE, JournalBusy
from dasec.safety.journal.journal import Journal, peek, read_boot_id
from dasec.safety.restore import recover
from dasec.safety.verify import verify

from .knobs_for_tests import held, open_journal, reopen, slice_of


@pytest.mark.parametrize(
    "content", [b"", b"\0" * 4096, b"hello\n", b"#!/bin/sh\n" * 1000, os.urandom(10_000)]
)
def test_a_file_that_is_no_journal_is_kept_aside_and_reported(place: Path, content: bytes) -> None:
    place.mkdir(mode=0o700)
    (place / "journal").write_bytes(content)
    journal, notices = Journal.open(place, wait_s=0.0)
    assert notices
    assert held(journal) == {}
    assert (place / f"{ASIDE}1").read_bytes() == content
    journal.begin([Write(slice_of(1), 0, 4)])
    journal.close()


@pytest.fixture
def _of_another_boot(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A journal of the boot before lies there and holds something."""
    with monkeypatch.context() as patch:
        patch.setattr(journal_module, "read_boot_id", lambda: "00000000-1111-2222-3333-444444444444")
        old = open_journal(place)
        old.begin([Write(slice_of(1), 0, 4)])
        old.close()


@pytest.mark.usefixtures("_of_another_boot")
def test_another_boots_journal_is_void_because_its_knobs_died_with_the_kernel(place: Path) -> None:
    journal, notices = Journal.open(place, wait_s=0.0)
    assert "another boot" in str(notices[0])
    assert held(journal) == {}
    journal.close()


@pytest.mark.usefixtures("_of_another_boot")
def test_another_boots_lines_are_void_even_without_their_header(place: Path) -> None:
    whole = (place / "journal").read_bytes()
    (place / "journal").write_bytes(whole.partition(b"\n")[2])
    journal, notices = Journal.open(place, wait_s=0.0)
    assert notices
    assert held(journal) == {}
    journal.close()


def test_a_journal_of_another_schema_stays_for_the_version_that_wrote_it_and_nothing_is_written_before(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(codec, "SCHEMA", 99)
        theirs = open_journal(place)
        theirs.begin([Write(slice_of(1), 0, 4)])
        theirs.close()
    before = (place / "journal").read_bytes()
    journal, notices = Journal.open(place, wait_s=0.0)
    assert "schema 99" in str(notices[0])
    with pytest.raises(OSError, match="schema 99.*`dasec restore` of the version that wrote it"):
        journal.begin([Write(slice_of(2), 0, 4)])
    journal.settle([slice_of(2)])
    journal.close()
    assert "schema 99" in recover(place, wait_s=0.0)[0].failed[0]
    assert (names_in(place), (place / "journal").read_bytes()) == (["journal"], before)
    with monkeypatch.context() as patch:
        patch.setattr(codec, "SCHEMA", 99)
        patch.setattr(codec, "READABLE", (99,))
        assert recover(place, wait_s=0.0)[0].vanished == 1
    open_journal(place).close()


def test_a_journal_of_another_schema_that_holds_nothing_stops_nobody(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.mkdir(mode=0o700)
    with monkeypatch.context() as patch:
        patch.setattr(codec, "SCHEMA", 99)
        (place / "journal").write_bytes(codec.encode_header(codec.Origin(read_boot_id(), own_namespaces())))
    journal = open_journal(place)
    journal.begin([Write(slice_of(1), 0, 4)])
    journal.close()


def test_a_journal_that_cannot_be_read_for_a_moment_stays_and_counts_when_it_can(
    journal: Journal, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal.begin([Write(slice_of(1), 0, 4)])
    before = (place / "journal").read_bytes()
    journal.close()
    for look in (recover, verify):
        with no_descriptors_but(1), pytest.raises(OSError, match="boot_id cannot be read now"):
            look(place)
    this_boot = read_boot_id()
    monkeypatch.setattr(journal_module, "read_boot_id", lambda: this_boot)
    for look in (recover, verify):
        with no_descriptors_but(1), pytest.raises(OSError, match="journal cannot be read now .*try again"):
            look(place)
    assert (place / "journal").read_bytes() == before
    for more in range(3):
        with no_descriptors_but(more), contextlib.suppress(OSError):
            Journal.open(place, wait_s=0.0)[0].close()
        assert (names_in(place), list(peek(place)[0].held)) == (["journal"], [slice_of(1)])
    again, notices = Journal.open(place, wait_s=0.0)
    assert (notices, held(again)) == ((), {slice_of(1): (0, (4,))})
    again.settle([slice_of(1)])
    again.close()


def test_a_journal_that_holds_nothing_leaves_no_file(journal: Journal, place: Path) -> None:
    journal.begin([Write(slice_of(1), 0, 4)])
    journal.settle([slice_of(1)])
    journal.close()
    assert names_in(place) == []
    assert recover(place, wait_s=0.0)[0].put_back == 0
    assert names_in(place) == []


def test_only_the_newest_damaged_journals_are_kept(place: Path) -> None:
    place.mkdir(mode=0o700)
    for number in range(KEPT_ASIDE + 4):
        (place / "journal").write_bytes(b"damage %d" % number)
        Journal.open(place, wait_s=0.0)[0].close()
    kept = sorted(int(path.name.removeprefix(ASIDE)) for path in place.glob(f"{ASIDE}*"))
    assert kept == list(range(5, 5 + KEPT_ASIDE))


def test_a_directory_in_the_place_of_the_journal_is_moved_aside(place: Path) -> None:
    place.mkdir(mode=0o700)
    (place / "journal" / "inner").mkdir(parents=True)
    journal, notices = Journal.open(place, wait_s=0.0)
    assert "is not a file" in str(notices[0])
    journal.begin([Write(slice_of(1), 0, 4)])
    assert (place / f"{ASIDE}1" / "inner").is_dir()
    journal.close()


def test_a_pipe_in_the_place_of_the_journal_does_not_hang_us(place: Path) -> None:
    place.mkdir(mode=0o700)
    os.mkfifo(place / "journal")
    journal, notices = Journal.open(place, wait_s=0.0)
    assert "is not a file" in str(notices[0])
    journal.close()


def test_a_link_in_the_place_of_the_journal_is_not_followed(place: Path, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    place.mkdir(mode=0o700)
    for name in ("journal", "journal.new"):
        (place / name).symlink_to(victim)
    journal, notices = Journal.open(place, wait_s=0.0)
    journal.begin([Write(slice_of(1), 0, 4)])
    journal.close()
    assert notices
    assert victim.read_text() == "precious"
    assert not (place / "journal").is_symlink()


def test_a_link_in_the_place_of_the_directory_is_refused(place: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    place.symlink_to(elsewhere)
    with pytest.raises(NotADirectoryError, match="is a link: name the directory itself"):
        Journal.open(place, wait_s=0.0)
    assert list(elsewhere.iterdir()) == []


def test_a_file_in_the_place_of_the_directory_is_refused_with_one_line(place: Path) -> None:
    place.write_text("")
    with pytest.raises(NotADirectoryError, match="is not a directory: remove it or name another"):
        Journal.open(place, wait_s=0.0)


def test_the_directory_is_private_and_another_users_is_refused(place: Path) -> None:
    journal = open_journal(place)
    assert stat.S_IMODE(place.stat().st_mode) == 0o700
    assert stat.S_IMODE((place / "journal").stat().st_mode) == 0o600
    journal.close()
    if os.geteuid() == 0:
        os.chown(place, 12345, 0)
        with pytest.raises(PermissionError, match="belongs to user 12345"):
            Journal.open(place, wait_s=0.0)


@pytest.mark.parametrize("mode", [0o755, 0o1777])
def test_a_directory_that_is_not_ours_alone_is_refused_and_stays_as_it_is(place: Path, mode: int) -> None:
    place.mkdir()
    place.chmod(mode)
    with pytest.raises(PermissionError, match=rf"is open to others \(mode {mode:o}\)"):
        Journal.open(place, wait_s=0.0)
    assert (stat.S_IMODE(place.stat().st_mode), names_in(place)) == (mode, [])


def test_a_directory_with_the_files_of_others_is_refused_and_stays_as_it_is(place: Path) -> None:
    place.mkdir(mode=0o700)
    (place / "theirs").touch()
    with pytest.raises(PermissionError, match="holds other files .'theirs'.: name one of our own"):
        Journal.open(place, wait_s=0.0)
    assert names_in(place) == ["theirs"]


def test_who_only_looks_changes_no_directory_and_believes_none_that_others_may_write(place: Path) -> None:
    place.mkdir()
    place.chmod(0o755)
    (place / "theirs").touch()
    peek(place)
    verify(place)
    recover(place)
    place.chmod(0o1777)
    for look in (peek, verify, recover):
        with pytest.raises(PermissionError, match="is open to others"):
            look(place)
    assert (stat.S_IMODE(place.stat().st_mode), names_in(place)) == (0o1777, ["theirs"])


@pytest.mark.parametrize("harm", ["removed", "moved", "replaced", "journal removed", "journal replaced"])
def test_a_journal_that_is_not_in_its_place_any_more_is_written_anew_whole(
    journal: Journal, place: Path, tmp_path: Path, harm: str
) -> None:
    journal.begin([Write(slice_of(1), 0, 4)])
    journal.group_made("/cg/dasec-1")
    journal.ensure()
    if harm in ("moved", "replaced"):
        place.rename(tmp_path / "elsewhere")
    elif harm == "removed":
        shutil.rmtree(place)
    else:
        (place / "journal").unlink()
    if harm == "replaced":
        place.mkdir(mode=0o700)
    if harm == "journal replaced":
        (place / "journal").write_bytes(b"theirs")
    journal.ensure()
    journal.begin([Write(slice_of(2), 0, 5)])
    with pytest.raises(JournalBusy):
        Journal.open(place, wait_s=0.0)
    again, notices = reopen(journal, place)
    assert (notices, again.groups()) == ((), ("/cg/dasec-1",))
    assert held(again) == {slice_of(1): (0, (4,)), slice_of(2): (0, (5,))}
    again.close()


def test_where_the_journal_cannot_be_written_anew_it_says_so_until_it_can(
    journal: Journal, place: Path
) -> None:
    journal.begin([Write(slice_of(1), 0, 4)])
    shutil.rmtree(place)
    place.mkdir()
    place.chmod(0o755)
    for _ in range(2):
        with pytest.raises(PermissionError, match="is open to others"):
            journal.ensure()
    place.chmod(0o700)
    journal.ensure()
    assert list(peek(place)[0].held) == [slice_of(1)]


def test_a_rewrite_that_was_cut_short_leaves_the_journal_as_it_was(journal: Journal, place: Path) -> None:
    journal.begin([Write(slice_of(1), 0, 4)])
    (place / "journal.new").write_bytes(b"dasec-journal 1 half")
    again, notices = reopen(journal, place)
    assert notices == ()
    assert held(again) == {slice_of(1): (0, (4,))}
    again.close()


def test_the_boot_id_is_this_boots() -> None:
    assert read_boot_id() == Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def names_in(place: Path) -> list[str]:
    return sorted(path.name for path in place.iterdir())


class no_descriptors_but:
    """While it lasts this process can open so many files more."""

    def __init__(self, more: int) -> None:
        self.more = more

    def __enter__(self) -> None:
        self.before = resource.getrlimit(resource.RLIMIT_NOFILE)
        self.filled: list[int] = []
        self.filled = [os.dup(0) for _ in range(64)]  # no gap among the lower numbers is left
        free = self.filled[-1] + 1
        resource.setrlimit(resource.RLIMIT_NOFILE, (free + self.more, self.before[1]))

    def __exit__(self, *error: object) -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, self.before)
        for fd in self.filled:
            os.close(fd)
