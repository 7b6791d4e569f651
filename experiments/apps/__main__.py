"""`python -m experiments.apps selftest`; drivers.md says more."""

from __future__ import annotations

from experiments.loads.entry import enter

from .command import command

if __name__ == "__main__":
    enter(command, "experiments.apps")
