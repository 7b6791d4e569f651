"""`python -m experiments.apps`; README.md and drivers.md say more."""

from __future__ import annotations

from experiments.suite.entry import enter

from .command import command

if __name__ == "__main__":
    enter(command, "experiments.apps")
