"""What the kernel interface can say besides OSError."""

from __future__ import annotations

import errno


class ThreadGone(Exception):
    """The thread ended, its id belongs to another by now, or its group vanished. Normal."""


class NotFair(OSError):
    """The thread is in no fair class now: its slice can be neither seen nor set, and comes back with it."""


class HierarchyMissing(Exception):
    """No cpu cgroup hierarchy is mounted here."""


def unknown_format(what: str) -> OSError:
    """A file of the kernel is not of the format that we know: the only error of every parser here. As an
    OSError it costs the one thread or group whose file it is, like any other error of that file."""
    return OSError(errno.EPROTO, what)
