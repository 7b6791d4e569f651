"""`python -m experiments.studies.bare edges`; README.md says more."""

from __future__ import annotations

from experiments.run.entry import enter

from .command import command

if __name__ == "__main__":
    enter(command, "experiments.studies.bare")
