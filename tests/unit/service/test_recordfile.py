"""The record's file is bounded, and no trouble with it stops the daemon."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from dasec.log import Announcer
from dasec.model import Decision, Period, Topology
from dasec.policies import Parameters
from dasec.record.entries import Entry, Stages
from dasec.record.file import RETRY_NS, NotARecord, RecordFile

from .periods import STATE


class Clock:
    """Stands still until told otherwise."""

    def __init__(self) -> None:
        self.now_ns = 0

    def __call__(self) -> int:
        return self.now_ns


def entry(index: int) -> Entry:
    period = Period(index, 80_000_000, Topology((), {}), (), {}, {}, {})
    return Entry(index, 0, period, Decision({}, (), STATE), (), (), Stages())


def record(path: Path, clock: Clock | None = None, max_bytes: int = 10**6, files: int = 3) -> RecordFile:
    return RecordFile(
        path, "none", Parameters(), Announcer(), max_bytes=max_bytes, files=files, clock=clock or Clock()
    )


def lines(path: Path) -> list[bytes]:
    return path.read_bytes().splitlines()


def test_a_record_is_a_header_and_a_line_a_period(tmp_path: Path) -> None:
    file = record(tmp_path / "r")
    for index in range(3):
        file.write(entry(index), STATE)
    file.close()
    assert len(lines(tmp_path / "r")) == 4


def test_a_full_file_moves_aside_and_the_oldest_goes(tmp_path: Path) -> None:
    file = record(tmp_path / "r", max_bytes=1400, files=3)
    for index in range(120):
        file.write(entry(index), STATE)
    file.close()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["r", "r.1", "r.2"]
    assert all(lines(path)[0].startswith(b'{"dasec_record"') for path in tmp_path.iterdir())
    assert all(path.stat().st_size < 2800 for path in tmp_path.iterdir())


def test_with_one_file_to_keep_the_full_one_is_replaced(tmp_path: Path) -> None:
    file = record(tmp_path / "r", max_bytes=1400, files=1)
    for index in range(120):
        file.write(entry(index), STATE)
    file.close()
    assert [path.name for path in tmp_path.iterdir()] == ["r"]


def test_an_earlier_record_is_kept_aside(tmp_path: Path) -> None:
    for _ in range(2):
        file = record(tmp_path / "r")
        file.write(entry(0), STATE)
        file.close()
    assert lines(tmp_path / "r") == lines(tmp_path / "r.1")


@pytest.mark.parametrize(
    "take", [lambda path: path.rename(path.with_name("moved")), Path.unlink], ids=["moved", "removed"]
)
def test_a_record_that_somebody_has_moved_or_removed_goes_on_in_its_place(
    tmp_path: Path, take: Callable[[Path], object]
) -> None:
    file = record(tmp_path / "r")
    file.write(entry(0), STATE)
    take(tmp_path / "r")
    for index in (1, 2):
        file.write(entry(index), STATE)
    file.close()
    header, *rest = lines(tmp_path / "r")
    assert header.startswith(b'{"dasec_record"')
    assert [line[:11] for line in rest] == [b'{"period":1', b'{"period":2']


def test_a_record_that_another_daemon_writes_stays_its_own_until_it_ends(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    first, clock = record(tmp_path / "r"), Clock()
    first.write(entry(0), STATE)
    second = record(tmp_path / "r", clock)
    assert "another process records to it: running on without a record" in caplog.text
    clock.now_ns += RETRY_NS
    second.write(entry(0), STATE)
    first.write(entry(1), STATE)
    first.close()
    assert [path.name for path in tmp_path.iterdir()] == ["r"]
    assert [line[:11] for line in lines(tmp_path / "r")[1:]] == [b'{"period":0', b'{"period":1']
    clock.now_ns += RETRY_NS
    second.write(entry(1), STATE)
    second.close()
    assert len(lines(tmp_path / "r")) == 5


def test_somebody_elses_file_is_never_touched(tmp_path: Path) -> None:
    (tmp_path / "passwd").write_text("root:x:0:0\n")
    with pytest.raises(NotARecord, match="not a DASEC record: give another"):
        record(tmp_path / "passwd")
    assert (tmp_path / "passwd").read_text() == "root:x:0:0\n"


@pytest.mark.parametrize(
    "left", [bytes(1), bytes(4096), b'{"dasec', b'{"dasec' + bytes(9)], ids=["1", "4096", "cut", "cut, zeros"]
)
def test_what_a_power_cut_left_of_a_record_is_kept_aside(tmp_path: Path, left: bytes) -> None:
    (tmp_path / "r").write_bytes(left)
    file = record(tmp_path / "r")
    file.write(entry(0), STATE)
    file.close()
    assert len(lines(tmp_path / "r")) == 2
    assert (tmp_path / "r.1").read_bytes() == left


@pytest.mark.parametrize("theirs", [bytes(3) + b"theirs", b"{}", b'{"dasec": 1}'])
def test_what_only_looks_like_it_is_somebody_elses(tmp_path: Path, theirs: bytes) -> None:
    (tmp_path / "r").write_bytes(theirs)
    with pytest.raises(NotARecord):
        record(tmp_path / "r")
    assert (tmp_path / "r").read_bytes() == theirs


def test_a_full_disk_is_one_line_in_the_log_however_long_it_lasts(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    file = record(Path("/dev/full"), clock)
    for index in range(5):
        clock.now_ns += RETRY_NS + 1
        file.write(entry(index), STATE)
    assert [message.split(":")[1].strip() for message in caplog.messages] == ["No space left on device"]


def test_a_record_that_fails_rests_before_the_next_try(tmp_path: Path) -> None:
    clock = Clock()
    file = record(tmp_path / "missing" / "r", clock)
    (tmp_path / "missing").mkdir()
    file.write(entry(0), STATE)
    assert not (tmp_path / "missing" / "r").exists()
    clock.now_ns += RETRY_NS
    file.write(entry(1), STATE)
    assert len(lines(tmp_path / "missing" / "r")) == 2


def test_a_record_that_works_again_says_so_and_starts_with_a_header(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    clock = Clock()
    path = tmp_path / "gone" / "r"
    file = record(path, clock)
    path.parent.mkdir()
    clock.now_ns += RETRY_NS
    file.write(entry(7), STATE)
    file.close()
    assert caplog.messages[-1] == f"record {path}: writing again"
    assert lines(path)[0].startswith(b'{"dasec_record"')
