""".ci/run believes pytest's closing line, and nothing else."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest


def ci_run(repository: Path, tmp_path: Path, said: str, status: int) -> subprocess.CompletedProcess[str]:
    """Runs .ci/run with a `make` that says so and ends so."""
    make = tmp_path / "make"
    make.write_text(f'#!/bin/sh\n[ "$1 $DASEC_CI" = "test 1" ] || exit 9\necho "{said}"\nexit {status}\n')
    make.chmod(0o755)
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    return subprocess.run(
        [repository / ".ci/run"], env=environment, cwd="/", capture_output=True, text=True, check=False
    )


def test_a_run_that_passed_passes_and_ends_with_the_closing_line(repository: Path, tmp_path: Path) -> None:
    closing = "====== 312 passed, 4 skipped in 301.07s (0:05:01) ======"
    done = ci_run(repository, tmp_path, closing, 0)
    assert done.returncode == 0
    assert done.stdout.splitlines()[-1] == closing


@pytest.mark.parametrize(
    ("said", "status"),
    [
        ("====== 1 failed, 311 passed in 300.00s ======", 2),
        ("====== 9 skipped in 0.10s ======", 0),
        ("====== no tests ran in 0.01s ======", 0),
        ("nothing to be done for test", 0),
    ],
)
def test_a_run_that_failed_or_tested_nothing_fails(
    repository: Path, tmp_path: Path, said: str, status: int
) -> None:
    assert ci_run(repository, tmp_path, said, status).returncode != 0
