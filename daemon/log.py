"""The log: changes of state only, one line each; never a line a period.

What was decided and why is the record's business.
"""

from __future__ import annotations

import logging
import os
import stat
import sys
import time
from collections.abc import Callable, Mapping
from typing import TextIO

from .flow import Flow
from .linux.printable import printable

LOGGER = logging.getLogger("dasec")

SYSLOG_PRIORITY = {
    logging.DEBUG: 7,
    logging.INFO: 6,
    logging.WARNING: 4,
    logging.ERROR: 3,
    logging.CRITICAL: 2,
}
"""sd-daemon(3): the number in <N> before a line on stderr."""


QUIET_NS = 60_000_000_000
"""A trouble that comes and goes is said at most once in this time."""


class LineFormatter(logging.Formatter):
    """A message is one line, whatever names it quotes; only a traceback has more."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802  # the library's name
        """The message after what comes before it."""
        return printable(super().formatMessage(record))


class JournalFormatter(LineFormatter):
    """Puts the priority where systemd-journald looks for it."""

    def format(self, record: logging.LogRecord) -> str:
        """Each line with its priority: journald takes lines one by one."""
        prefix = f"<{SYSLOG_PRIORITY.get(record.levelno, 6)}>"
        return "\n".join(prefix + line for line in super().format(record).split("\n"))


class PipeHandler(logging.Handler):
    """Into a pipe: who logs never waits for its reader. A message that finds no room is left out, and how
    many were is said before the next one that does."""

    def __init__(self, descriptor: int) -> None:
        super().__init__()
        self._descriptor = descriptor
        self._owed = b""
        self._left_out = 0

    def emit(self, record: logging.LogRecord) -> None:
        """Write it if there is room."""
        said = f"{self.format(record)}\n"
        if self._left_out:
            number = f"{self._left_out} message{'s' * (self._left_out > 1)}"
            said = f"dasec: {number} left out: whoever reads the log does not keep up\n{said}"
        self._left_out = 0 if self._put(said.encode(errors="replace")) else self._left_out + 1

    def close(self) -> None:
        """Let the pipe go, with as much of the last message as fits."""
        if self._descriptor >= 0:
            self._put(b"")
            os.close(self._descriptor)
        self._descriptor = -1
        super().close()

    def _put(self, data: bytes) -> bool:
        """Is it on its way? Of half a message the rest is owed, and goes before all else."""
        owed, waiting = len(self._owed), self._owed + data
        try:
            written = os.write(self._descriptor, waiting)
        except OSError:  # full, or nobody reads it any more
            return False
        taken = written > owed
        self._owed = waiting[written:] if taken else self._owed[written:]
        return taken


def start(environment: Mapping[str, str] = os.environ, stream: TextIO | None = None) -> None:
    """Log to `stream` (stderr): for systemd-journald if that is where it goes, else for a person."""
    stream = stream or sys.stderr
    handler = _handler(stream)
    if goes_to_journal(environment.get("JOURNAL_STREAM", ""), stream):
        handler.setFormatter(JournalFormatter("%(message)s"))
    else:
        handler.setFormatter(LineFormatter("dasec: %(message)s"))
    for before in LOGGER.handlers:
        before.close()
    LOGGER.handlers[:] = [handler]
    LOGGER.setLevel(logging.INFO)
    LOGGER.propagate = False


def _handler(stream: TextIO) -> logging.Handler:
    """A pipe is opened once more: that its writers wait is a matter of all who have it open, as a shell."""
    try:
        if stat.S_ISFIFO(os.fstat(stream.fileno()).st_mode):
            path, how = f"/proc/self/fd/{stream.fileno()}", os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC
            return PipeHandler(os.open(path, how))
    except (OSError, ValueError):
        pass
    return logging.StreamHandler(stream)


def goes_to_journal(journal_stream: str, stream: TextIO) -> bool:
    """systemd.exec(5): JOURNAL_STREAM is inherited, so it counts only if it names this very stream."""
    try:
        status = os.fstat(stream.fileno())
    except (OSError, ValueError):
        return False
    return journal_stream == f"{status.st_dev}:{status.st_ino}"


class Announcer:
    """Says a thing when it becomes so, and when it ends; not while it lasts, and not again and again
    if it comes and goes."""

    def __init__(self, logger: logging.Logger = LOGGER, clock: Callable[[], int] = time.monotonic_ns) -> None:
        self._logger, self._clock = logger, clock
        self._lasting: dict[str, str] = {}
        self._said_ns: dict[str, int] = {}
        self._silent: set[str] = set()
        self._flow = Flow(clock)

    def state(self, about: str, trouble: str | None, over: str = "") -> None:
        """`trouble` is so for `about` now (None: all is well, and `over` says so if it was not)."""
        self._sum_up()
        trouble = None if trouble is None else printable(trouble)
        before = self._lasting.get(about)
        if trouble == before:
            return
        if trouble is not None:
            self._lasting[about] = trouble
            if self._fresh(trouble) and self._flow.lets_through(about):
                self._silent.discard(about)
                self._logger.warning("%s", trouble)
            else:
                self._silent.add(about)
        else:
            del self._lasting[about]
            if about not in self._silent:
                self._logger.info("%s", over or f"{about}: well again")

    def _fresh(self, text: str) -> bool:
        """Was this not said for a while?"""
        now_ns = self._clock()
        said_ns = self._said_ns.get(text)
        if said_ns is not None and now_ns - said_ns < QUIET_NS:
            return False
        self._said_ns = {one: at for one, at in self._said_ns.items() if now_ns - at < QUIET_NS}
        self._said_ns[text] = now_ns
        return True

    def note(self, text: str, kind: str = "") -> None:
        """Something that happened and needs no end. `kind`: of which lines it is one, if they differ."""
        self._sum_up()
        if self._flow.lets_through(kind or text):
            self._logger.info("%s", text)

    def _sum_up(self) -> None:
        for line in self._flow.sums():
            self._logger.info("%s", line)

    @property
    def troubles(self) -> tuple[str, ...]:
        """What is so at the moment."""
        return tuple(self._lasting.values())
