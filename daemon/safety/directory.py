"""The journal's directory, held open: locked, private, and every name below opened relative to it.

Mode 0700 and O_NOFOLLOW on the last step and on each file keep another user's link from
leading us to write elsewhere. The lock is on the directory itself, so that taking it needs
no room on a full file system and leaves nothing behind; the kernel drops it with its holder.
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

MAX_READ = 64 << 20
"""Bytes read of a file named journal. Ours stays below 32 MiB: MAX_HELD knobs of 200 bytes, twice."""

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
    """An open, private state directory."""

    def __init__(self, path: Path, *, create: bool = True) -> None:
        """Raises OSError with one line for the user where the directory cannot be used."""
        self.path = path
        if create:
            _make(path)
        self.fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            self._make_private()
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
        for _ in range(max(1, round(wait_s / _POLL_S))):
            if self._try_lock():
                return
            time.sleep(_POLL_S)
        if not self._try_lock():
            raise self._busy()

    def locked(self) -> bool:
        """Does somebody else have the lock now?"""
        if not self._try_lock():
            return True
        fcntl.flock(self.fd, fcntl.LOCK_UN)
        return False

    def read(self, name: str) -> tuple[bytes, Notice | None]:
        """A file's bytes (none if there is no such file), and what is wrong with it as a file."""
        try:
            fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=self.fd)
        except FileNotFoundError:
            return b"", None
        except OSError as error:
            return b"", self._notice(name, f"cannot be read ({os.strerror(error.errno or 0)})")
        try:
            if not stat.S_ISREG(os.fstat(fd).st_mode):
                return b"", self._notice(name, "is not a file")
            with os.fdopen(os.dup(fd), "rb") as file:
                return file.read(MAX_READ), None
        except OSError as error:
            return b"", self._notice(name, f"cannot be read ({os.strerror(error.errno or 0)})")
        finally:
            os.close(fd)

    def create(self, name: str) -> int:
        """A new file open for appending; whatever had the name before is removed or renamed."""
        try:
            self.remove(name)
        except OSError:
            self.set_aside(name)
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        return os.open(name, flags, 0o600, dir_fd=self.fd)

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

    def holder(self) -> int | None:
        """The process that has the lock, if somebody has and the kernel tells who."""
        here = os.fstat(self.fd)
        wanted = f"{os.major(here.st_dev):02x}:{os.minor(here.st_dev):02x}:{here.st_ino}"
        try:
            with open("/proc/locks", encoding="ascii") as locks:
                rows = [line.split() for line in locks]
        except OSError:
            return None
        return next((int(row[4]) for row in rows if row[1] == "FLOCK" and row[5] == wanted), None)

    def _try_lock(self) -> bool:
        try:
            fcntl.flock(self.fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _busy(self) -> JournalBusy:
        pid = self.holder()
        who = f"process {pid} ({_comm(pid)})" if pid else "another process"
        return JournalBusy(errno.EBUSY, f"journal: {self.path} is in use by {who}: stop that one first")

    def _notice(self, name: str, what: str) -> Notice:
        return Notice(f"journal {what}", str(self.path / name), "entries that it may have had are lost")

    def _make_private(self) -> None:
        info = os.fstat(self.fd)
        if info.st_uid != os.geteuid():
            raise PermissionError(
                errno.EPERM,
                f"state directory: {self.path} belongs to user {info.st_uid}: remove it or name another",
            )
        if stat.S_IMODE(info.st_mode) & 0o077:
            os.fchmod(self.fd, 0o700)


def _make(path: Path) -> None:
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    except FileExistsError:
        raise NotADirectoryError(
            errno.ENOTDIR, f"state directory: {path} is not a directory: remove it or name another"
        ) from None


def _is_aside(name: str) -> bool:
    return name.startswith(ASIDE) and name.removeprefix(ASIDE).isdecimal()


def _comm(pid: int) -> str:
    try:
        with open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as file:
            return file.read().strip()
    except OSError:
        return "ended just now"
