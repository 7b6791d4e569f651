"""A journal whose threads have other ids or start times where it is found."""

from __future__ import annotations

import os
from pathlib import Path
from zlib import crc32

import pytest
from click.testing import CliRunner

from dasec.commands.cli import commands
from dasec.errors import ExitStatus, Refusal
from dasec.knobs.knob import Write
from dasec.linux.namespaces import FOREIGN_PROC, Namespaces, own_namespaces
from dasec.safety.journal import journal as journal_module
from dasec.safety.journal.codec import decode_header
from dasec.safety.journal.journal import Journal, read_boot_id
from dasec.safety.restore import recover, restore
from dasec.safety.verify import verify

from .knobs_for_tests import held, open_journal, slice_of

OWN = own_namespaces()
PID, TIME = OWN._replace(pid=OWN.pid + 1), OWN._replace(time=OWN.time + 1)


@pytest.fixture(params=[PID, TIME], ids=["pid", "time"])
def elsewhere(request: pytest.FixtureRequest) -> Namespaces:
    """Where this process seems to be once it has `enter`ed."""
    there: Namespaces = request.param
    return there


def enter(namespaces: Namespaces, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal_module, "own_namespaces", lambda: namespaces)


def left(place: Path) -> bytes:
    """The journal of a killed daemon that held one knob of a thread and a group."""
    journal = open_journal(place)
    journal.begin([Write(slice_of(1), 0, 4)])
    journal.group_made("/cg/dasec-1")
    journal.close()
    return (place / "journal").read_bytes()


def files(place: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in place.iterdir()}


def test_a_journal_of_another_namespace_stays_and_nothing_is_put_back_or_written(
    place: Path, elsewhere: Namespaces, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = left(place)
    enter(elsewhere, monkeypatch)
    kind = "pid" if elsewhere == PID else "time"
    line = rf"^journal of {kind} namespace \d+, this is \d+: {place}/journal: .*`dasec restore` there"
    journal, notices = Journal.open(place, wait_s=0.0)
    assert (len(notices), held(journal), journal.groups()) == (1, {}, ())
    with pytest.raises(OSError, match=line.replace("^", "")):
        journal.begin([Write(slice_of(2), 0, 4)])
    with pytest.raises(OSError, match="namespace"):
        journal.group_made("/cg/dasec-2")
    journal.ensure()
    journal.close()
    restored, said = recover(place, wait_s=0.0)
    assert (restored.vanished, restored.put_back, said) == (0, 0, ())
    assert restored.failed == tuple(map(str, notices))
    assert [one for one in verify(place) if one in notices] == list(notices)
    assert files(place) == {"journal": before}


def test_where_it_was_written_it_is_put_back_afterwards(
    place: Path, elsewhere: Namespaces, monkeypatch: pytest.MonkeyPatch
) -> None:
    left(place)
    with monkeypatch.context() as patch:
        enter(elsewhere, patch)
        recover(place, wait_s=0.0)
        Journal.open(place, wait_s=0.0)[0].close()
    assert recover(place, wait_s=0.0)[0].vanished == 1
    assert files(place) == {}


def test_a_restore_in_another_namespace_fails_in_one_line_also_when_it_is_forced(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = left(place)
    enter(PID, monkeypatch)
    told = CliRunner().invoke(commands, ["restore", "--directory", str(place)])
    assert isinstance(told.exception, Refusal)
    assert told.exception.status == ExitStatus.FAILED
    assert told.stdout.count("pid namespace") == 1
    running, _ = Journal.open(place, wait_s=0.0)
    monkeypatch.setattr("dasec.safety.restore.recover", lambda place: recover(place, wait_s=0.0))
    assert len(restore(place, force=True)[0].failed) == 1
    running.close()
    assert files(place) == {"journal": before}


def test_a_journal_of_another_namespace_that_holds_nothing_stops_nobody(
    place: Path, elsewhere: Namespaces, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = open_journal(place)
    journal.begin([Write(slice_of(1), 0, 4)])
    journal.settle([slice_of(1)])
    lines = (place / "journal").read_bytes()
    journal.close()
    (place / "journal").write_bytes(lines)
    enter(elsewhere, monkeypatch)
    here = open_journal(place)
    here.begin([Write(slice_of(2), 0, 4)])
    here.close()
    header = decode_header((place / "journal").read_bytes().partition(b"\n")[0])
    assert header is not None
    assert header.namespaces == elsewhere


def test_a_journal_of_a_version_that_knew_no_namespaces_counts_as_it_did(place: Path) -> None:
    lines = left(place).partition(b"\n")[2]
    text = f"dasec-journal 2 {read_boot_id()}".encode()
    (place / "journal").write_bytes(b"%s %08x\n%s" % (text, crc32(text), lines))
    journal = open_journal(place)
    assert (held(journal), journal.groups()) == ({slice_of(1): (0, (4,))}, ("/cg/dasec-1",))
    journal.close()


def test_namespaces_are_those_of_this_process_and_missing_ones_are_none(tmp_path: Path) -> None:
    assert f"pid:[{OWN.pid}]" == os.readlink("/proc/self/ns/pid")
    (tmp_path / "self").mkdir()
    assert own_namespaces(str(tmp_path)) == Namespaces(0, 0)


def test_where_proc_is_another_pid_namespaces_nobody_is_taken_for_gone(tmp_path: Path) -> None:
    (tmp_path / "self").symlink_to("nobody")
    with pytest.raises(OSError, match=FOREIGN_PROC):
        own_namespaces(str(tmp_path))
