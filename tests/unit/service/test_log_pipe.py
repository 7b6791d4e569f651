"""A log into a pipe: nobody waits for its reader."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

import pytest

from dasec import log
from dasec.errors import ExitStatus

from .command import FAKE, configuration

pytestmark = pytest.mark.timeout(60)
"""A write that waits for a reader would never end."""

LONG = "x" * 5000
"""More than a pipe takes or refuses as a whole (PIPE_BUF, pipe(7))."""

MANY = 100


class Pipe:
    """A pipe, as a shell makes one, of which somebody reads when told to."""

    def __init__(self) -> None:
        self._reader, self.writer = os.pipe()
        os.set_blocking(self._reader, False)
        self.stream: TextIO = os.fdopen(self.writer, "w")

    def take(self) -> str:
        """What is there."""
        found = b""
        try:
            while part := os.read(self._reader, 1 << 16):
                found += part
        except BlockingIOError:
            pass
        return found.decode()

    def fill(self) -> None:
        """Until there is no room."""
        os.set_blocking(self.writer, False)
        try:
            while True:
                os.write(self.writer, b"x" * 64)
        except BlockingIOError:
            os.set_blocking(self.writer, True)

    def close(self) -> None:
        log.LOGGER.handlers[0].close()
        self.stream.close()
        os.close(self._reader)


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    one = Pipe()
    log.start({}, one.stream)
    yield one
    one.close()


def test_what_finds_no_room_is_left_out_and_counted_once_there_is_some(pipe: Pipe) -> None:
    for number in range(MANY):
        log.LOGGER.info("%s %s", number, LONG)
    taken = pipe.take()
    assert not taken.endswith("\n")
    log.LOGGER.info("and on")
    *whole, counted, last = (taken + pipe.take()).splitlines()
    assert whole == [f"dasec: {number} {LONG}" for number in range(len(whole))]
    number = MANY - len(whole)
    assert counted == f"dasec: {number} messages left out: whoever reads the log does not keep up"
    assert last == "dasec: and on"


def test_a_message_longer_than_the_pipe_arrives_at_a_reader_that_reads_on(pipe: Pipe) -> None:
    log.LOGGER.info("%s", LONG * 20)
    taken = ""
    for word in ("one", "two", "three"):
        taken += pipe.take()
        log.LOGGER.info("%s", word)
    assert taken + pipe.take() == f"dasec: {LONG * 20}\ndasec: one\ndasec: two\ndasec: three\n"


def test_others_who_write_into_the_pipe_wait_as_before(pipe: Pipe) -> None:
    log.LOGGER.info("one")
    assert os.get_blocking(pipe.writer)
    assert pipe.take() == "dasec: one\n"


def test_a_reader_that_went_away_costs_nothing(pipe: Pipe, capsys: pytest.CaptureFixture[str]) -> None:
    reader = os.dup(pipe.writer)
    os.dup2(reader, pipe._reader)
    os.close(reader)
    log.LOGGER.info("into nowhere")
    assert capsys.readouterr() == ("", "")


def test_a_daemon_whose_log_nobody_reads_runs_to_its_end(pipe: Pipe, tmp_path: Path) -> None:
    pipe.fill()
    config = configuration(tmp_path, "period_ms = 10\n" + FAKE)
    command = (sys.executable, "-m", "dasec", "run", "--config", str(config), "--periods", "3")
    with subprocess.Popen(command, stderr=pipe.writer) as daemon:
        try:
            assert daemon.wait(30) == ExitStatus.DONE
        finally:
            daemon.kill()
