"""Every experiment starts: a command that nobody imports breaks unseen."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
MODULES = sorted(
    [f"experiments.studies.{file.parent.name}" for file in ROOT.glob("experiments/studies/*/__main__.py")]
    + ["experiments.studies.fig13.run"]
)
SCRIPTS = sorted(
    str(file.relative_to(ROOT))
    for file in ROOT.glob("experiments/studies/*/run.py")
    if "__main__" in file.read_text(encoding="utf-8") and file.parent.name != "fig13"
)


def test_there_are_such_commands() -> None:
    assert {"experiments.studies.apps", "experiments.studies.testbed"} <= set(MODULES)
    assert "experiments/studies/loads/run.py" in SCRIPTS


@pytest.mark.parametrize(
    "started", [*(["-m", name] for name in MODULES), *([name] for name in SCRIPTS)], ids=" ".join
)
def test_the_command_says_how_it_is_used(started: list[str]) -> None:
    command = [sys.executable, *started, "--help"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("Usage: ")
