"""Files in directories to which others may write: root is not led astray by what they put there."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dasec.linux import whole_file
from dasec.metrics.textfile import NOTE, sweep

from .periods import STATE
from .test_recordfile import entry, lines, record


@pytest.fixture
def theirs(tmp_path: Path) -> Path:
    """A directory in which anybody may put what he likes."""
    place = tmp_path / "theirs"
    place.mkdir()
    place.chmod(0o777)
    return place


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    """What nobody else may read or change."""
    path = tmp_path / "secret"
    path.touch(mode=0o600)
    return path


def untouched(path: Path) -> bool:
    status = path.stat()
    return (status.st_size, status.st_mode & 0o777, status.st_nlink) == (0, 0o600, 1)


@pytest.mark.parametrize("name", ["dasec.prom", "dasec.prom.new"])
def test_a_link_in_the_place_of_a_file_is_replaced_and_what_it_means_stays(
    theirs: Path, secret: Path, name: str
) -> None:
    (theirs / name).symlink_to(secret)
    whole_file.replace(theirs / "dasec.prom", b"metrics")
    assert untouched(secret)
    assert [(path.name, path.is_symlink()) for path in theirs.iterdir()] == [("dasec.prom", False)]
    assert (theirs / "dasec.prom").read_bytes() == b"metrics"


def test_a_file_with_a_second_name_is_replaced_and_not_written_to(theirs: Path, secret: Path) -> None:
    (theirs / "dasec.prom.new").hardlink_to(secret)
    whole_file.replace(theirs / "dasec.prom", b"metrics")
    assert untouched(secret)


def test_a_link_on_the_way_that_somebody_else_could_have_put_there_is_not_followed(
    theirs: Path, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "dasec.prom").touch()
    (theirs / "way").symlink_to(elsewhere)
    with pytest.raises(
        OSError, match="'way' on the way to it is a link that somebody else could have put there"
    ):
        whole_file.replace(theirs / "way" / "dasec.prom", b"metrics")
    (tmp_path / NOTE).write_bytes(bytes(theirs / "way" / "dasec.prom"))
    sweep(tmp_path)
    assert [(path.name, path.stat().st_size) for path in elsewhere.iterdir()] == [("dasec.prom", 0)]


def test_a_link_on_the_way_that_only_its_operator_could_have_made_is_followed(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    (tmp_path / "way").symlink_to("inner")
    (tmp_path / "over").symlink_to(tmp_path / "way" / ".." / "way")
    whole_file.replace(tmp_path / "over" / "dasec.prom", b"metrics")
    assert (tmp_path / "inner" / "dasec.prom").read_bytes() == b"metrics"


def test_links_in_a_circle_are_an_error(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(OSError, match="Too many levels of symbolic links"):
        whole_file.replace(tmp_path / "a" / "dasec.prom", b"metrics")


def test_what_could_not_be_written_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "dasec.prom").mkdir()
    with pytest.raises(IsADirectoryError):
        whole_file.replace(tmp_path / "dasec.prom", b"metrics")
    assert [path.name for path in tmp_path.iterdir()] == ["dasec.prom"]


def test_a_note_that_names_no_file_stops_no_restore(tmp_path: Path) -> None:
    (tmp_path / NOTE).write_bytes(b"\xff\x00/x")
    sweep(tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("bring", [Path.symlink_to, Path.hardlink_to])
def test_no_record_is_appended_to_what_somebody_else_put_in_its_place(
    theirs: Path, secret: Path, bring: object, caplog: pytest.LogCaptureFixture
) -> None:
    bring(theirs / "r", secret)  # type: ignore[operator]
    file = record(theirs / "r")
    file.write(entry(0), STATE)
    file.close()
    assert secret.stat().st_size == 0
    assert len([line for line in caplog.messages if "running on without a record" in line]) == 1


def test_a_pipe_in_the_place_of_the_record_does_not_hang_us(theirs: Path) -> None:
    os.mkfifo(theirs / "r")
    record(theirs / "r").close()


def test_a_record_behind_a_link_of_its_operator_turns_over_where_it_lies(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "r").symlink_to("disk/r")
    for _ in range(2):
        file = record(tmp_path / "r")
        file.write(entry(0), STATE)
        file.close()
    assert (tmp_path / "r").is_symlink()
    assert sorted(path.name for path in (tmp_path / "disk").iterdir()) == ["r", "r.1"]


def test_a_record_may_go_to_what_is_already_open(tmp_path: Path) -> None:
    ours, theirs = os.pipe()
    file = record(Path(f"/proc/self/fd/{theirs}"))
    file.write(entry(0), STATE)
    file.close()
    os.close(theirs)
    with open(ours, "rb") as told:
        assert len(told.read().splitlines()) == 2
    assert lines(Path("/dev/null")) == []
