"""The namespaces by which this process knows threads: another pid namespace has other ids for them, another
time namespace other start times."""

from __future__ import annotations

import errno
import os
from typing import NamedTuple

from .procfs import PROC

FOREIGN_PROC = "/proc is another pid namespace's: mount the one of this process"


class Namespaces(NamedTuple):
    """Inodes, 0 where the kernel has none. A number is given out again only when its namespace has ended
    (proc_free_inum() in fs/proc/generic.c), a pid namespace with all of its threads."""

    pid: int
    time: int


def own_namespaces(proc: str = PROC) -> Namespaces:
    """Of this process. Raises OSError: who is who cannot be told here."""
    try:
        os.stat(f"{proc}/self")
    except FileNotFoundError as error:
        raise OSError(errno.EXDEV, FOREIGN_PROC) from error
    return Namespaces(_inode(f"{proc}/self/ns/pid"), _inode(f"{proc}/self/ns/time"))


def _inode(path: str) -> int:
    try:
        return os.stat(path).st_ino
    except FileNotFoundError:
        return 0
