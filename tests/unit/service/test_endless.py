"""What is no record, and has no end or no writer, is refused at once."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dasec.errors import ExitStatus
from dasec.record.lines import FIRST_BYTES

from .command import dasec

READERS = [["replay"], ["explain", "a", "--record"], ["top", "--record"]]


@pytest.mark.parametrize("command", READERS)
def test_a_pipe_without_a_writer_keeps_nobody_waiting(tmp_path: Path, command: list[str]) -> None:
    os.mkfifo(tmp_path / "r")
    answer = dasec(*command, tmp_path / "r", before=("timeout", "60"))
    assert (answer.status, answer.errors) == (
        ExitStatus.USAGE,
        [f"dasec: {tmp_path}/r: is not a file that can be read again: give a readable record"],
    )


@pytest.mark.parametrize("command", READERS)
def test_a_device_without_an_end_is_no_record(command: list[str]) -> None:
    answer = dasec(*command, "/dev/zero", before=("prlimit", "--as=2000000000", "timeout", "60"))
    assert answer.status == ExitStatus.USAGE
    assert len(answer.errors) == 1


@pytest.mark.parametrize("command", READERS)
def test_a_line_without_an_end_takes_no_memory(tmp_path: Path, command: list[str]) -> None:
    (tmp_path / "r").write_bytes(FIRST_BYTES)
    os.truncate(tmp_path / "r", 1 << 30)
    answer = dasec(*command, tmp_path / "r", before=("prlimit", "--as=2000000000"))
    assert answer.status == (ExitStatus.FAILED if command == ["replay"] else ExitStatus.USAGE)
    assert len(answer.errors) == 1
    assert "a line has more than 64 MiB: give a file that `dasec run --record` wrote" in answer.errors[0]
