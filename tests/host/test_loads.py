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
    *("loads=['external','memcached']", "policies=['oracle']", "ratios=[4]", "utilisations=[0.3]"),
    *("repetitions=1", "seconds=0.5", "warmup_s=0.5"),
)
BEGIN_PATIENCE_S = 240.0


def finished(folder: Path) -> list[tuple[str, int]]:
    file = folder / "runs.jsonl"
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    return [(done["cell"], done["repetition"]) for done in map(json.loads, lines)]


@pytest.mark.host
@pytest.mark.thorough
def test_a_short_suite_is_interrupted_goes_on_and_leaves_a_report_and_nothing_else(
    repository: Path, tmp_path: Path
) -> None:
    file = repository / "experiments/studies/loads/usual.toml"
    settings = [part for setting in SHORT for part in ("--set", setting)]
    command = [sys.executable, "-m", "experiments", "run", str(file), *settings, "--out", str(tmp_path)]
    first = subprocess.Popen(
        command, cwd=repository, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    deadline = time.monotonic() + BEGIN_PATIENCE_S
    while not finished(tmp_path) and first.poll() is None and time.monotonic() < deadline:
        time.sleep(0.1)
    first.send_signal(signal.SIGINT)
    _, complaint = first.communicate(timeout=60)
    kept = finished(tmp_path)
    assert (first.returncode, "interrupted" in complaint, len(kept)) == (1, True, 1), complaint
    check_nothing_is_left()
    done = subprocess.run(command, cwd=repository, capture_output=True, text=True, check=False)
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
