"""Standard streams that whoever started us has closed, filled up or stopped reading."""

from __future__ import annotations

import errno
import os
import sys
from typing import TextIO

from ..errors import ExitStatus


def open_all() -> None:
    """What is closed leads nowhere. Else the next file that we open would be what messages are written to."""
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest that is free
    sys.stdout = sys.stdout or os.fdopen(1, "w", encoding="utf-8", closefd=False)
    sys.stderr = sys.stderr or os.fdopen(2, "w", encoding="utf-8", closefd=False)


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


def is_of_a_stream(error: OSError) -> bool:
    """A full disk or a reader that has gone, and no name of a file."""
    return error.filename is None and error.errno in (errno.EPIPE, errno.ENOSPC, errno.EIO)


def unwritten(error: OSError) -> int:
    """The status of a command whose answer was not taken. Who stopped reading knows why."""
    if error.errno != errno.EPIPE:
        say(f"dasec: the answer cannot be written: {error.strerror}: make room, or write it elsewhere")
    return ExitStatus.FAILED


def _lead_nowhere(stream: TextIO) -> None:
    """The interpreter flushes what is left when it ends, and would fail anew."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
