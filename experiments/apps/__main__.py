"""Experiments with real applications: python -m experiments.apps, from the repository's top folder."""

from __future__ import annotations

from ..suite.entry import enter
from .command import command

if __name__ == "__main__":
    enter(command, "python -m experiments.apps")
