"""The log says what became so, once, and in the form that its reader wants."""

from __future__ import annotations

import logging
import os
from io import StringIO
from pathlib import Path

import pytest

from dasec import log
from dasec.log import Announcer


@pytest.fixture
def logger() -> logging.Logger:
    return logging.getLogger("dasec.test")


def test_a_state_is_announced_when_it_begins_and_when_it_ends(
    logger: logging.Logger, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    announcer = Announcer(logger)
    for trouble in (None, "full", "full", "full", None, None):
        announcer.state("disk", trouble, "room again")
    assert caplog.messages == ["full", "room again"]


def test_a_trouble_that_changes_is_announced_again(
    logger: logging.Logger, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    announcer = Announcer(logger)
    announcer.state("disk", "full")
    announcer.state("disk", "gone")
    assert caplog.messages == ["full", "gone"]
    assert announcer.troubles == ("gone",)


def test_a_trouble_that_comes_and_goes_is_said_once_a_minute(
    logger: logging.Logger, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    now_ns = 0
    announcer = Announcer(logger, lambda: now_ns)
    for _ in range(1000):
        announcer.state("disk", "full")
        announcer.state("disk", None, "room again")
        now_ns += 80_000_000
    assert caplog.messages == ["full", "room again"] * 2


def test_for_a_person_a_line_begins_with_the_name_of_the_program() -> None:
    stream = StringIO()
    log.start({}, stream)
    log.LOGGER.warning("something")
    assert stream.getvalue() == "dasec: something\n"


def test_for_the_journal_every_line_begins_with_its_priority(tmp_path: Path) -> None:
    with (tmp_path / "journal").open("w") as stream:
        status = os.fstat(stream.fileno())
        log.start({"JOURNAL_STREAM": f"{status.st_dev}:{status.st_ino}"}, stream)
        try:
            raise ValueError("why")
        except ValueError:
            log.LOGGER.exception("two lines and more")
        log.LOGGER.info("one")
    first, *trace, last = (tmp_path / "journal").read_text().splitlines()
    assert (first, last) == ("<3>two lines and more", "<6>one")
    assert trace[-1] == "<3>ValueError: why"
    assert all(line.startswith("<3>") for line in trace)


def test_a_message_is_one_line_whatever_names_it_quotes() -> None:
    stream = StringIO()
    log.start({}, stream)
    log.LOGGER.warning("group %s", "a\n<0>b\x1b]0;owned\x07\udcff\x85")
    assert stream.getvalue() == "dasec: group a\ufffd<0>b\ufffd]0;owned\ufffd\ufffd\ufffd\n"


def test_a_trouble_is_kept_as_it_may_be_shown() -> None:
    announcer = Announcer(logging.getLogger("dasec.test"))
    announcer.state("apply", "group a\udcff\x1b[2J is full")
    assert announcer.troubles == ("group a\ufffd\ufffd[2J is full",)


def test_an_inherited_journal_variable_counts_only_for_the_stream_that_it_names(tmp_path: Path) -> None:
    with (tmp_path / "other").open("w") as stream:
        assert not log.goes_to_journal("1:2", stream)
        assert not log.goes_to_journal("", StringIO())
