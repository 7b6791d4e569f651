"""python -m experiments: from the repository's top folder; README.md says more."""

from __future__ import annotations

from .command import command
from .run.entry import enter

enter(command, "python -m experiments")
