"""Steps that no stop signal may part."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager

STOPPERS = {signal.SIGTERM, signal.SIGINT}


@contextmanager
def uninterrupted() -> Iterator[None]:
    """A stop signal is heard at the end of the block: what was begun in it is known by then to who undoes it.
    Processes that are started in it do not hear one."""
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, STOPPERS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
