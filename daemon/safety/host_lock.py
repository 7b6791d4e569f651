"""One daemon a host, whatever its directory: a lock that only root can take.

It is on a file in the default directory (mode 0700, the file 0600): who could open the file could
lock it. The kernel drops the lock with its holder, and never leaves it to a keeper. The file
says where the journal of its last holder is: a daemon that was given another directory
first puts back what a killed one left in that.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from pathlib import Path

from .journal.directory import NO_FILE, Directory, JournalBusy, holder_of, lock_within
from .journal.journal import DIRECTORY

NAME = "host.lock"


class HostLock:
    """Held from `take` to `close`."""

    def __init__(self, journal: Path, home: Path, fd: int) -> None:
        """Use `HostLock.take`."""
        self._journal, self._home, self._fd = journal, home, fd

    @classmethod
    def take(cls, journal: Path, *, home: Path = DIRECTORY, wait_s: float = 2.0) -> HostLock:
        """For a daemon whose journal is in this directory. Raises JournalBusy, or OSError."""
        return cls(journal.absolute(), home, _locked(home, wait_s))

    def former(self) -> Path | None:
        """The directory of the last holder, if it was another one than ours."""
        return _other_than(self._journal, self._fd)

    def note(self) -> None:
        """From now on the journal of this host is ours. Best effort: the disk may be full."""
        with contextlib.suppress(OSError):
            os.ftruncate(self._fd, 0)
            os.pwrite(self._fd, bytes(self._journal), 0)

    def ensure(self) -> None:
        """Is the file that we have locked still the one that others would lock? Else lock that one. Raises
        JournalBusy where somebody else was quicker, or OSError."""
        ours = os.fstat(self._fd)
        with contextlib.suppress(OSError):
            if os.path.samestat(ours, os.stat(self._home / NAME, follow_symlinks=False)):
                return
        fd = _locked(self._home, 0.0)
        self.close()
        self._fd = fd
        self.note()

    def close(self) -> None:
        """Let go of it. The file stays: who removed it could remove another's."""
        os.close(self._fd)


def elsewhere(directory: Path, home: Path = DIRECTORY) -> Path | None:
    """Where the host's last daemon had its journal, if not in `directory`, the one that it would be in."""
    if directory != home:
        return None
    try:
        fd = os.open(home / NAME, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        return _other_than(home, fd)
    finally:
        os.close(fd)


def _other_than(journal: Path, fd: int) -> Path | None:
    with contextlib.suppress(OSError, ValueError):
        noted = os.fsdecode(os.pread(fd, os.pathconf("/", "PC_PATH_MAX"), 0))
        return None if not noted or os.path.samefile(noted, journal) else Path(noted)
    return None


def _locked(home: Path, wait_s: float) -> int:
    place = Directory(home)
    try:
        fd = _opened(place)
    finally:
        place.close()
    if lock_within(fd, wait_s):
        return fd
    who = holder_of(fd)
    os.close(fd)
    raise JournalBusy(errno.EBUSY, f"host: another daemon, {who}, has {home / NAME}: stop that one first")


def _opened(place: Directory) -> int:
    """What has the lock's name and is no file makes room."""
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        fd = os.open(NAME, flags, 0o600, dir_fd=place.fd)
    except OSError as error:
        if error.errno not in (*NO_FILE, errno.EISDIR):
            raise
    else:
        if stat.S_ISREG(os.fstat(fd).st_mode):
            return fd
        os.close(fd)
    place.make_room(NAME)
    return os.open(NAME, flags, 0o600, dir_fd=place.fd)  # perhaps another daemon's, that was quicker
