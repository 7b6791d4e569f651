"""A file that readers find whole, in its old or its new state, or not at all."""

from __future__ import annotations

import errno
import os
from pathlib import Path


def fresh(path: Path) -> Path:
    """Where the new state of `path` is written before it takes its place."""
    return path.with_name(f"{path.name}.new")


def replace(path: Path, content: bytes) -> None:
    """All may read it, whatever our mask. Raises OSError, also where only a part had room; then `path` is
    as it was."""
    descriptor = os.open(fresh(path), os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
    try:
        os.fchmod(descriptor, 0o644)
        if os.write(descriptor, content) != len(content):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    finally:
        os.close(descriptor)
    os.replace(fresh(path), path)
