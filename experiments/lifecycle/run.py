"""How long domains take to start and stop: `.venv/bin/python experiments/lifecycle/run.py`, as root."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from experiments.lifecycle.command import command  # noqa: E402  # this folder's parent has to be found first
from experiments.suite.entry import enter  # noqa: E402

if __name__ == "__main__":
    enter(command, "run.py")
