"""A file that can be read again, opened without waiting for anybody."""

from __future__ import annotations

import errno
import os
import stat
from typing import BinaryIO


def opened(path: str | os.PathLike[str]) -> BinaryIO:
    """For reading. Raises OSError, also for what is no regular file: a pipe without a writer would keep a
    daemon waiting that reads its configuration again, and a device may have no end."""
    return open(path, "rb", opener=_descriptor)


def _descriptor(name: str, flags: int) -> int:
    descriptor = os.open(name, flags | os.O_NONBLOCK)
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISREG(mode) or stat.S_ISDIR(mode):  # of a directory `open` says it itself
        return descriptor
    os.close(descriptor)
    raise OSError(errno.EINVAL, "is not a file that can be read again", name)
