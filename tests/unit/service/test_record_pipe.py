"""A record into a pipe: nobody waits for its reader, and no reader takes half a line for a whole one."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from dasec.errors import ExitStatus
from dasec.model import VcpuId
from dasec.record.entries import Entry
from dasec.record.file import RETRY_NS
from dasec.record.replay import replay
from dasec.record.tail import RecordTail

from .command import FAKE, configuration
from .periods import STATE, busy_history
from .test_recordfile import Clock, record

pytestmark = pytest.mark.timeout(60)
"""A write that waits for a reader would never end."""

PIPE_BYTES = 1 << 16
"""pipe(7)."""


class Reader:
    """Reads a pipe when told to, and keeps what there was."""

    def __init__(self, folder: Path) -> None:
        self.path, self.kept = folder / "pipe", folder / "kept"
        os.mkfifo(self.path)
        self._descriptor = self.open()

    def open(self) -> int:
        self._descriptor = os.open(self.path, os.O_RDONLY | os.O_NONBLOCK)
        return self._descriptor

    def narrow(self) -> None:
        """Has room for a few lines only."""
        fcntl.fcntl(self._descriptor, fcntl.F_SETPIPE_SZ, 4096)

    def take(self) -> bool:
        """Keep what is there. Is it the end?"""
        with self.kept.open("ab") as file:
            try:
                while part := os.read(self._descriptor, PIPE_BYTES):
                    file.write(part)
            except BlockingIOError:
                return False
        return True

    def close(self) -> None:
        os.close(self._descriptor)


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Reader]:
    one = Reader(tmp_path)
    yield one
    one.close()


def wide(entry: Entry) -> Entry:
    """The same period with so many vCPUs that its line is longer than a pipe."""
    first, _ = entry.period.workloads
    vcpus = tuple(first.vcpus[0]._replace(id=VcpuId(1, tid, 1)) for tid in range(1, 4000))
    many = replace(entry.period, workloads=(replace(first, vcpus=vcpus),), usage={}, knobs={}, core_of={})
    return entry._replace(period=many)


def test_a_pipe_that_nobody_empties_is_one_line_in_the_log(
    reader: Reader, caplog: pytest.LogCaptureFixture
) -> None:
    file = record(reader.path)
    for entry in busy_history(2000):
        file.write(entry, STATE)
    file.close()
    assert caplog.messages == [
        f"record {reader.path}: whoever reads it does not keep up: running on without a record,"
        " trying again every 10 s"
    ]


def test_what_a_slow_reader_gets_can_be_replayed_and_read_from_its_end(
    reader: Reader, caplog: pytest.LogCaptureFixture
) -> None:
    clock, history = Clock(), busy_history(4250)
    file = record(reader.path, clock)
    for at, entry in enumerate(history):
        if at % 700 == 699:
            reader.take()
            clock.now_ns += RETRY_NS
        file.write(entry, STATE)
    reader.take()
    file.close()
    assert reader.take()
    said = [message.removeprefix(f"record {reader.path}: ")[:13] for message in caplog.messages]
    assert said == ["whoever reads", "writing again"]  # what comes again within a minute is not said again
    assert reader.kept.read_bytes().count(b'{"dasec_record"') > 2
    done = replay(reader.kept)
    assert not done.notices
    assert 500 < done.periods < 4250
    *_, last = RecordTail(reader.kept).read()
    assert last.period.index == history[-1].period.index


def test_lines_longer_than_the_pipe_arrive_at_a_reader_that_reads_on(
    reader: Reader, caplog: pytest.LogCaptureFixture
) -> None:
    file = record(reader.path)
    for entry in map(wide, busy_history(8)):
        file.write(entry, STATE)
        reader.take()
    reader.take()
    file.close()
    assert reader.take()
    assert len(reader.kept.read_bytes().splitlines()[1]) > PIPE_BYTES
    assert replay(reader.kept).periods == 8
    assert caplog.messages == []


def test_a_slow_reader_is_not_told_that_the_record_has_ended(reader: Reader) -> None:
    file = record(reader.path)
    for entry in busy_history(2000):
        file.write(entry, STATE)
    assert not reader.take()
    file.close()
    assert reader.take()


def test_who_comes_after_a_reader_that_went_away_begins_with_a_header(reader: Reader) -> None:
    clock = Clock()
    file = record(reader.path, clock)
    for entry in busy_history(2000):
        file.write(entry, STATE)
    reader.close()
    for entry in busy_history(2):
        clock.now_ns += RETRY_NS
        file.write(entry, STATE)
    reader.open()
    clock.now_ns += RETRY_NS
    file.write(busy_history(1)[0], STATE)
    file.close()
    assert reader.take()
    assert reader.kept.read_bytes().startswith(b'{"dasec_record"')
    assert replay(reader.kept).periods == 1


def test_a_daemon_whose_record_nobody_reads_goes_on_and_ends_when_told(
    reader: Reader, tmp_path: Path
) -> None:
    reader.narrow()
    config = configuration(tmp_path, "period_ms = 10\n" + FAKE)
    command = (sys.executable, "-m", "dasec", "run", "--config", str(config), "--record", str(reader.path))
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as daemon:
        try:
            assert daemon.stderr
            assert any("whoever reads it does not keep up" in line for line in daemon.stderr)
            daemon.terminate()
            assert daemon.wait() == ExitStatus.DONE
        finally:
            daemon.kill()
