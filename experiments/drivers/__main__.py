"""python -m experiments.drivers: from the repository's top folder; README.md says more."""

from __future__ import annotations

from ..run.entry import enter
from .command import command

enter(command, "python -m experiments.drivers")
