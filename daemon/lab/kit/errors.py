"""What ends a run early."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from types import FrameType

from ...errors import ExitStatus, Refusal

STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupted(BaseException):
    """SIGTERM or SIGINT: clean up, then end. Nothing on the way may take it for an error of its own."""


class StartMissed(Exception):
    """The load tool was told too late when to begin."""


def failure(line: str) -> Refusal:
    """The run failed, for a reason that lies in it."""
    return Refusal(ExitStatus.FAILED, line)


@contextlib.contextmanager
def said_by(command: str) -> Iterator[None]:
    """Refusals say which command they are of."""
    try:
        yield
    except Refusal as refusal:
        raise Refusal(refusal.status, *(f"{command}: {line}" for line in refusal.lines)) from refusal


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """The first signal that asks us to stop raises Interrupted; later ones are ignored: nothing disturbs the
    cleaning after it."""
    before = {number: signal.getsignal(number) for number in STOPPING}

    def interrupt(number: int, frame: FrameType | None) -> None:  # noqa: ARG001  # the interface of handlers
        for stopping in STOPPING:
            signal.signal(stopping, signal.SIG_IGN)
        raise Interrupted

    for number in STOPPING:
        signal.signal(number, interrupt)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def undisturbed() -> Iterator[None]:
    """A signal that asks us to stop counts at the end of the block: what was begun in it is known by then to
    who ends it. Processes that are started in it hear signals as ever: their handlers go when they begin."""
    came: list[int] = []

    def remember(number: int, frame: FrameType | None) -> None:  # noqa: ARG001  # the interface of handlers
        came.append(number)

    before = {number: signal.signal(number, remember) for number in STOPPING}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        for heard in came:
            signal.raise_signal(heard)


@contextlib.contextmanager
def ended_by_signals() -> Iterator[None]:
    """As `interruptible`, and says so when the block has cleaned up. Raises Refusal."""
    try:
        with interruptible():
            yield
    except Interrupted:
        raise failure("interrupted: everything it had started is gone") from None
