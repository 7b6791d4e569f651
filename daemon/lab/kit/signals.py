"""SIGINT and SIGTERM as one exception, once: nothing disturbs the cleaning after it."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from types import FrameType

from .errors import Interrupted

STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """The first signal that asks us to stop raises Interrupted; later ones are ignored."""
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
