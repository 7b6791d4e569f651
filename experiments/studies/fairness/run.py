"""Fairness of `critical`: `.venv/bin/python experiments/studies/fairness/run.py`, as root."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from experiments.studies.fairness.command import main  # noqa: E402  # this folder's parent has to be found first

if __name__ == "__main__":
    main()
