"""How a command ends when it does not simply end well, and where the daemon lives."""

from __future__ import annotations

from enum import IntEnum

DIRECTORY = "/run/dasec"
"""Where journal and status live."""


class ExitStatus(IntEnum):
    """What the shell sees."""

    DONE = 0
    FAILED = 1
    USAGE = 2
    HOST = 3


class Refusal(Exception):
    """A command that cannot go on, for a reason that its user can mend: each line "what: where: how"."""

    def __init__(self, status: ExitStatus, *lines: str) -> None:
        super().__init__("\n".join(lines))
        self.status = status
        self.lines = lines
