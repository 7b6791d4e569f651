"""Consolidated VMs: `.venv/bin/python experiments/studies/vms/run.py`, as root; README.md says more."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from experiments.run.entry import enter  # noqa: E402  # this folder's parent has to be found first
from experiments.studies.vms.command import command  # noqa: E402

if __name__ == "__main__":
    enter(command, "run.py")
