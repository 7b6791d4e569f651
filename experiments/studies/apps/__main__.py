"""`python -m experiments.studies.apps`; README.md and drivers/README.md say more."""

from __future__ import annotations

from experiments.run.entry import enter

from .command import command

if __name__ == "__main__":
    enter(command, "experiments.studies.apps")
