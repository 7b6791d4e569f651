"""python -m experiments.studies.testbed: from the repository's top folder; README.md says more."""

from __future__ import annotations

from ...run.entry import enter
from .command import command

if __name__ == "__main__":
    enter(command, "python -m experiments.studies.testbed")
