"""What ends a demo early."""

from __future__ import annotations

from ...errors import ExitStatus, Refusal


class Interrupted(BaseException):
    """SIGTERM or SIGINT: clean up, then end. Nothing on the way may take it for an error of its own."""


class StartMissed(Exception):
    """The load tool was not ready at the time that was set for the start of all loads, or the daemon had not
    begun when the measured part did."""


def failure(line: str) -> Refusal:
    """The demo cannot go on, for a reason that lies in this run."""
    return Refusal(ExitStatus.FAILED, f"demo: {line}")
