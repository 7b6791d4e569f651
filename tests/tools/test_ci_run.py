""".ci/run believes pytest's closing line, and nothing else."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

CLOSING = "====== 312 passed, 4 skipped in 301.07s (0:05:01) ======"
PARTS = "\n".join([CLOSING] * 3)
"""Of cheap, host and alone."""

GUESTS = "====== 98 passed, 3 skipped in 901.07s (0:15:01) ======"


def ci_run(
    repository: Path, tmp_path: Path, said: dict[str, tuple[str, int]]
) -> subprocess.CompletedProcess[str]:
    """Runs .ci/run with a `make` that says so, and ends so, for each target."""
    cases = "".join(
        f"{target}) echo '{lines}'; exit {status} ;;\n" for target, (lines, status) in said.items()
    )
    make = tmp_path / "make"
    make.write_text(f'#!/bin/sh\n[ "$DASEC_CI" = 1 ] || exit 9\ncase $1 in\n{cases}esac\nexit 9\n')
    make.chmod(0o755)
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    return subprocess.run(
        [repository / ".ci/run"], env=environment, cwd="/", capture_output=True, text=True, check=False
    )


def test_a_run_that_passed_passes_and_ends_with_the_closing_lines(repository: Path, tmp_path: Path) -> None:
    done = ci_run(repository, tmp_path, {"test": (PARTS, 0), "test-guests": (GUESTS, 0)})
    assert done.returncode == 0
    assert done.stdout.splitlines()[-4:] == [CLOSING, CLOSING, CLOSING, GUESTS]


@pytest.mark.parametrize("target", ["test", "test-guests"])
@pytest.mark.parametrize(
    ("said", "status"),
    [
        ("====== 1 failed, 311 passed in 300.00s ======", 2),
        ("====== 9 skipped in 0.10s ======", 0),
        ("====== no tests ran in 0.01s ======", 0),
        ("nothing to be done for test", 0),
    ],
)
def test_a_run_that_failed_or_tested_nothing_in_a_part_fails(
    repository: Path, tmp_path: Path, target: str, said: str, status: int
) -> None:
    good = {"test": (PARTS, 0), "test-guests": (GUESTS, 0)}
    bad = f"{CLOSING}\n{CLOSING}\n{said}" if target == "test" else said
    done = ci_run(repository, tmp_path, {**good, target: (bad, status)})
    assert done.returncode != 0
    assert GUESTS in done.stdout or target == "test-guests", "the other command runs, whatever the first said"
