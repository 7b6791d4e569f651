"""Standard streams that whoever started us has closed, filled up or stopped reading."""

from __future__ import annotations

import errno
import io
import os
import sys
from typing import TextIO

from ..errors import ExitStatus


class NotTaken(OSError):
    """Of stdout: what was said there."""


class _Answer(io.TextIOWrapper):
    """Stdout, where what cannot be written is told from other troubles with files."""

    def write(self, text: str) -> int:
        """As that of a file. Raises NotTaken."""
        try:
            return super().write(text)
        except OSError as error:
            raise NotTaken(error.errno, error.strerror) from error

    def flush(self) -> None:
        """As that of a file. Raises NotTaken."""
        try:
            super().flush()
        except OSError as error:
            raise NotTaken(error.errno, error.strerror) from error


def open_all() -> None:
    """What is closed leads nowhere. Else the next file that we open would be what messages are written to,
    ours and those of the keeper."""
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # the lowest that is free
    sys.stdout = sys.stdout or os.fdopen(1, "w", encoding="utf-8", closefd=False)
    sys.stderr = sys.stderr or os.fdopen(2, "w", encoding="utf-8", closefd=False)
    if type(sys.stdout) is io.TextIOWrapper:  # a name may hold what this terminal's encoding has not
        told = {"encoding": sys.stdout.encoding, "errors": "replace"}
        lines, through = sys.stdout.line_buffering, sys.stdout.write_through
        sys.stdout = _Answer(sys.stdout.detach(), **told, line_buffering=lines, write_through=through)


def say(line: str) -> None:
    """On stderr, if anybody can hear it."""
    try:
        print(line, file=sys.stderr, flush=True)
    except OSError:
        _lead_nowhere(sys.stderr)


def flushed(status: int) -> int:
    """The status, once all is written: failed if the answer could not be."""
    try:
        sys.stderr.flush()
    except OSError:
        _lead_nowhere(sys.stderr)
    try:
        sys.stdout.flush()
    except OSError as error:
        _lead_nowhere(sys.stdout)
        return status or unwritten(error)
    return status


def unwritten(error: OSError) -> int:
    """The status of a command whose answer was not taken. Who stopped reading knows why."""
    if error.errno != errno.EPIPE:
        say(f"dasec: the answer cannot be written: {error.strerror}: make room, or write it elsewhere")
    return ExitStatus.FAILED


def _lead_nowhere(stream: TextIO) -> None:
    """The interpreter flushes what is left when it ends, and would fail anew."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
