"""The suite of loads, as short as it gets: its structure, and that it can be interrupted. No timing."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from dasec.lab.kit.tree import Tree
from dasec.lab.kit.workspace import DIRECTORY, lock_file
from dasec.linux.cgroupfs import find_hierarchy

SHORT = (
    "--ratios",
    "4",
    "--utilisations",
    "0.3",
    "--repetitions",
    "1",
    "--seconds",
    "0.5",
    "--warmup",
    "0.5",
)
BEGIN_PATIENCE_S = 240.0


@pytest.fixture
def suite(repository: Path) -> list[str]:
    return [sys.executable, str(repository / "experiments/studies/loads/run.py")]


def finished(folder: Path) -> list[tuple[str, int]]:
    file = folder / "runs.jsonl"
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    return [(done["cell"], done["repetition"]) for done in map(json.loads, lines)]


@pytest.mark.host
def test_a_short_suite_is_interrupted_goes_on_and_leaves_a_report_and_nothing_else(
    suite: list[str], tmp_path: Path
) -> None:
    command = [
        *suite,
        *SHORT,
        "--loads",
        "external,memcached",
        "--policies",
        "oracle",
        "--out",
        str(tmp_path),
    ]
    first = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + BEGIN_PATIENCE_S
    while not finished(tmp_path) and first.poll() is None and time.monotonic() < deadline:
        time.sleep(0.1)
    first.send_signal(signal.SIGINT)
    _, complaint = first.communicate(timeout=60)
    kept = finished(tmp_path)
    assert (first.returncode, "interrupted" in complaint, len(kept)) == (1, True, 1), complaint
    check_nothing_is_left()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "1 of 2 blocks are there already" in done.stdout
    assert [cell for cell, _ in finished(tmp_path)][0] == kept[0][0]
    assert {cell for cell, _ in finished(tmp_path)} == {"external-r4-u0.3-flat", "memcached-r4-u0.3-flat"}
    page = (tmp_path / "report.md").read_text(encoding="utf-8")
    assert "| external (EXT) |" in page
    assert "| memcached (-) |" in page
    check_nothing_is_left()


def check_nothing_is_left() -> None:
    assert not DIRECTORY.exists()
    assert not lock_file(DIRECTORY).exists()
    assert not Tree.of(find_hierarchy()).top.exists()


@pytest.mark.parametrize(
    ("mistake", "line"),
    [
        ("--loads nosuch", "loads: --loads: nosuch: unknown: known are all, fanout, "),
        ("--ratios 0", "loads: --ratios: 0: give numbers above 0 and up to 1000, as 1,2,4"),
        ("--utilisations x", "loads: --utilisations: x: give numbers above 0 and up to 2, as 1,2,4"),
        ("--layouts nested", "loads: --layouts: nested: give flat, vm or both: flat,vm"),
        ("--policies dasek", "loads: --policies: dasek: unknown: known are bvt, critical, dasec, "),
        ("--report --out /nowhere", "loads: /nowhere: holds no results: give their folder"),
    ],
)
def test_a_mistake_is_one_line_and_exit_2(suite: list[str], mistake: str, line: str) -> None:
    done = subprocess.run([*suite, *mistake.split()], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(line)
    assert done.stderr.count("\n") == 1


def test_a_dry_run_says_what_would_be_run_and_needs_nothing(suite: list[str], tmp_path: Path) -> None:
    out = tmp_path / "new"
    command = [*suite, "--quick", "--dry-run", "--seed", "3", "--out", str(out)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "4 repetitions, arms none, none-again, critical, oracle, dasec" in done.stdout
    assert not out.exists()
