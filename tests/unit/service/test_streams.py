"""Standard streams that are closed, full or read no longer change no status and cost no traceback."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from dasec.errors import ExitStatus

DASEC = f"{sys.executable} -m dasec"
FULL = "dasec: the answer cannot be written: No space left on device: make room, or write it elsewhere\n"


def shell(command: str, place: Path) -> tuple[int, str]:
    """The status of the first of a pipe, and what stderr had."""
    done = subprocess.run(
        ["bash", "-c", f"{command}; exit ${{PIPESTATUS[0]}}"],
        cwd=place,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stderr


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        ("restore --directory none >&-", ExitStatus.DONE, ""),
        ("restore --directory none <&- >&- 2>&-", ExitStatus.DONE, ""),
        ("restore --directory none >/dev/full", ExitStatus.FAILED, FULL),
        ("--help >/dev/full", ExitStatus.FAILED, FULL),
        ("run --config none 2>/dev/full", ExitStatus.USAGE, ""),
        ("run --config none 2>&-", ExitStatus.USAGE, ""),
        ("run --config none 2>&1 | true", ExitStatus.USAGE, ""),
        ("none 2>/dev/full", ExitStatus.USAGE, ""),
    ],
)
@pytest.mark.parametrize("buffered", ["", "PYTHONUNBUFFERED=1 "])
def test_a_command_ends_with_its_status_whatever_its_streams(
    words: str, status: ExitStatus, said: str, buffered: str, tmp_path: Path
) -> None:
    assert shell(f"{buffered}{DASEC} {words}", tmp_path) == (status, said)


def test_a_daemon_whose_log_nobody_takes_runs_and_writes_to_no_file_of_its_own(tmp_path: Path) -> None:
    config = tmp_path / "dasec.toml"
    config.write_text('period_ms = 20\n[host]\nbackend = "fake"\n[[workload]]\nname = "a"\npids = [1]\n')
    for streams in ("2>&-", "2>/dev/full", "<&- >&- 2>&-", "2>&1 | true"):
        command = f"{DASEC} run --config {config} --periods 3 --record record {streams}"
        assert shell(command, tmp_path) == (ExitStatus.DONE, ""), streams
        assert b"dasec:" not in (tmp_path / "record").read_bytes()
        (tmp_path / "record").unlink()
