"""By what one version of a runtime's or an engine's file is told from another."""

from __future__ import annotations

import os
from typing import NamedTuple


class FileStamp(NamedTuple):
    """Of a file that is written beside the old one and renamed, or once."""

    inode: int
    changed_ns: int
    size: int


def stamp_of(status: os.stat_result) -> FileStamp:
    """What stat(2) says of it."""
    return FileStamp(status.st_ino, status.st_mtime_ns, status.st_size)
