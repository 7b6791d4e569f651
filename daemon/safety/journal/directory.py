"""The journal's directory, held open: locked, private, and every name below opened relative to it.

No directory of others is ever changed: one that exists has to be ours as it is. Mode 0700
and O_NOFOLLOW on the last step and on each file keep another user's link from leading us to
write elsewhere. The lock is on the directory itself, so that taking it needs no room on a
full file system and leaves nothing behind; the kernel drops it with its holder.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import stat
import time
from pathlib import Path
from typing import NamedTuple

KEPT_ASIDE = 5
"""Damaged journals kept for whoever wants to know; older ones are deleted."""

ASIDE = "journal.damaged-"

OUR_FILES = frozenset({"journal", "status", "textfile", "host"})
"""What the names of all our files in it begin with, up to a dot."""

MAX_READ = 64 << 20
"""Bytes read of a file named journal. Ours stays below 32 MiB: MAX_HELD knobs of 200 bytes, twice."""

MOMENTARY = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EIO})
"""Errors that say nothing of a file or directory: later it may work."""

NO_FILE = (errno.ELOOP, errno.ENXIO)
"""What opening a link or a socket says."""

_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC

_POLL_S = 0.005


class Notice(NamedTuple):
    """Something that the operator should know: what, where, and what was done or is to be done."""

    what: str
    where: str
    advice: str

    def __str__(self) -> str:
        return f"{self.what}: {self.where}: {self.advice}"


class JournalBusy(OSError):
    """Another daemon, keeper or restore holds the journal. The text is one line for the user."""


class Directory:
    """An open state directory."""

    def __init__(self, path: Path, *, create: bool = True, at: int | None = None) -> None:
        """With `create`, to live in: it is made, or must be private and ours alone. Without, to look into.
        A directory that exists is never changed. `at`: a descriptor of it, which counts and not the path.
        Raises OSError with one line for the user where it cannot be used."""
        self.path = path
        if create:
            _make(path)
        self.fd = _opened(path) if at is None else os.open(".", _FLAGS, dir_fd=at)
        try:
            self._refuse_others(0o077 if create else 0o022)
            if create:
                self._refuse_strangers()
        except OSError:
            self.close()
            raise

    def close(self) -> None:
        """Let go of the directory and, with it, of the lock."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1

    def lock(self, wait_s: float) -> None:
        """Take the lock. Raises JournalBusy if somebody else still has it after `wait_s`."""
        if not lock_within(self.fd, wait_s):
            text = f"journal: {self.path} is in use by {holder_of(self.fd)}: stop that one first"
            raise JournalBusy(errno.EBUSY, text)

    def locked(self) -> bool:
        """Does somebody else have the lock now?"""
        if not lock_within(self.fd, 0.0):
            return True
        fcntl.flock(self.fd, fcntl.LOCK_UN)
        return False

    def in_place(self) -> bool:
        """Does the path still lead here?"""
        try:
            return os.path.samestat(os.fstat(self.fd), os.stat(self.path, follow_symlinks=False))
        except OSError:
            return False

    def read(self, name: str) -> tuple[bytes | None, Notice | None]:
        """A file's bytes (None if there is no such file), and what is wrong with it as a file.

        Raises OSError with one line where it may be whole and cannot be read now: that is no damage.
        """
        try:
            fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=self.fd)
        except FileNotFoundError:
            return None, None
        except OSError as error:
            if error.errno in NO_FILE:
                return b"", self._notice(name, "is not a file")
            raise unreadable(self.path / name, error) from error
        try:
            if not stat.S_ISREG(os.fstat(fd).st_mode):
                return b"", self._notice(name, "is not a file")
            with os.fdopen(fd, "rb", closefd=False) as file:
                return file.read(MAX_READ), None
        except OSError as error:
            raise unreadable(self.path / name, error) from error
        finally:
            os.close(fd)

    def create(self, name: str) -> int:
        """A new file open for appending; whatever had the name before is removed or renamed."""
        self.make_room(name)
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        return os.open(name, flags, 0o600, dir_fd=self.fd)

    def make_room(self, name: str) -> None:
        """Remove what has the name, or rename it."""
        try:
            self.remove(name)
        except OSError:
            self.set_aside(name)

    def rename(self, old: str, new: str) -> None:
        """Rename inside the directory, atomically."""
        os.rename(old, new, src_dir_fd=self.fd, dst_dir_fd=self.fd)

    def remove(self, name: str) -> None:
        """Delete the file or link of this name, or the directory if it is empty. Raises OSError."""
        try:
            os.unlink(name, dir_fd=self.fd)
        except FileNotFoundError:
            return
        except (IsADirectoryError, PermissionError):
            os.rmdir(name, dir_fd=self.fd)

    def set_aside(self, name: str) -> str:
        """Keep what is there under a new name, without ever leaving the old one empty where a
        regular file holds it (a crash here must lose no entry); then drop the oldest kept ones."""
        kept = sorted(int(one.removeprefix(ASIDE)) for one in self.names() if _is_aside(one))
        aside = f"{ASIDE}{kept[-1] + 1 if kept else 1}"
        try:
            os.link(name, aside, src_dir_fd=self.fd, dst_dir_fd=self.fd, follow_symlinks=False)
        except OSError:
            self.rename(name, aside)
        for number in kept[: len(kept) + 1 - KEPT_ASIDE] if len(kept) >= KEPT_ASIDE else ():
            with contextlib.suppress(OSError):
                self.remove(f"{ASIDE}{number}")
        return aside

    def names(self) -> list[str]:
        """Everything in the directory."""
        return os.listdir(self.fd)

    def inode(self, name: str) -> int | None:
        """The inode number behind a name, if there is one."""
        try:
            return os.stat(name, dir_fd=self.fd, follow_symlinks=False).st_ino
        except OSError:
            return None

    def _notice(self, name: str, what: str) -> Notice:
        return Notice(f"journal {what}", str(self.path / name), "entries that it may have had are lost")

    def _refuse_others(self, forbidden: int) -> None:
        """Who may write here could forge a journal, who may read could take the lock."""
        info = os.fstat(self.fd)
        if info.st_uid != os.geteuid():
            raise _refusal(self.path, f"belongs to user {info.st_uid}: remove it or name another")
        mode = stat.S_IMODE(info.st_mode)
        if mode & forbidden:
            raise _refusal(self.path, f"is open to others (mode {mode:o}): close it to them or name another")

    def _refuse_strangers(self) -> None:
        others = sorted(name for name in self.names() if name.partition(".")[0] not in OUR_FILES)
        if others:
            raise _refusal(self.path, f"holds other files ({others[0]!r}): name one of our own")


def in_use(path: Path) -> bool:
    """Has a daemon, a keeper or a restore the lock of that directory? Raises OSError: cannot look."""
    place = Directory(path, create=False)
    try:
        return place.locked()
    finally:
        place.close()


def lock_within(fd: int, wait_s: float) -> bool:
    """Lock what is open there, for as long as that stays open. False: somebody else still has it."""
    for _ in range(round(wait_s / _POLL_S)):
        if _try_lock(fd):
            return True
        time.sleep(_POLL_S)
    return _try_lock(fd)


def holder_of(fd: int) -> str:
    """Who has the lock of it, for the user."""
    here = os.fstat(fd)
    wanted = f"{os.major(here.st_dev):02x}:{os.minor(here.st_dev):02x}:{here.st_ino}"
    try:
        pid = parse_locks(Path("/proc/locks").read_bytes(), wanted)
    except OSError:
        pid = None
    return f"process {pid} ({_comm(pid)})" if pid else "another process"


def _try_lock(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def unreadable(path: Path | str, error: OSError) -> OSError:
    """The same error, as one line for the user."""
    text = f"journal: {path} cannot be read now ({error.strerror}): nothing was changed: try again"
    return OSError(error.errno, text)


def parse_locks(locks: bytes, inode: str) -> int | None:
    """The process whose flock(2) on `inode` the lines of /proc/locks name, if one does."""
    for line in locks.split(b"\n"):
        match line.split():
            case [_, b"FLOCK", _, _, pid, place, *_] if place == inode.encode() and pid.isdigit():
                return int(pid) or None
    return None


def _opened(path: Path) -> int:
    try:
        return os.open(path, _FLAGS)
    except NotADirectoryError:
        if not path.is_symlink():
            raise
        text = f"state directory: {path} is a link: name the directory itself"
        raise NotADirectoryError(errno.ENOTDIR, text) from None


def _make(path: Path) -> None:
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    except FileExistsError:
        raise NotADirectoryError(
            errno.ENOTDIR, f"state directory: {path} is not a directory: remove it or name another"
        ) from None


def _refusal(path: Path, why: str) -> PermissionError:
    return PermissionError(errno.EPERM, f"state directory: {path} {why}")


def _is_aside(name: str) -> bool:
    return name.startswith(ASIDE) and name.removeprefix(ASIDE).isdecimal()


def _comm(pid: int) -> str:
    try:
        with open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as file:
            return file.read().strip()
    except OSError:
        return "ended just now"
