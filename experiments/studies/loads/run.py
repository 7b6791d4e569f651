"""The suite of loads: `.venv/bin/python experiments/studies/loads/run.py --quick`, as root."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from experiments.run.entry import enter  # noqa: E402
from experiments.studies.loads.command import command  # noqa: E402  # this folder's parent has to be found first

if __name__ == "__main__":
    enter(command, "run.py")
