"""The way to a file that the operator names, walked so that nobody else can lead us astray.

Who may write to a directory on the way can put a link there, and root would follow it
anywhere. So each step is opened by itself, and a link is followed only where root or we made
it, in a directory where nobody else could have replaced it. What was found stays what it was,
since everything is done relative to the open directory.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

_STEP = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC

_MOST_STEPS = 4096
"""More than a path can have (PATH_MAX): whoever needs more goes in a circle of links."""


class OpenPlace(NamedTuple):
    """A name in an open directory. `shared`: others may put something there. `kernels`: the name is a link of
    the kernel's own (/dev/stdout ends in one), which leads to an open file and not along a path."""

    fd: int
    name: str
    shared: bool
    kernels: bool = False

    def open(self, flags: int, mode: int = 0o600) -> int:
        """Open the file, whatever it is, and follow no link. Raises OSError."""
        no_link = 0 if self.kernels else os.O_NOFOLLOW
        return os.open(self.name, flags | no_link | os.O_CLOEXEC, mode, dir_fd=self.fd)

    def sibling(self, name: str) -> OpenPlace:
        """Another name in the same directory."""
        return self._replace(name=name, kernels=False)


@contextmanager
def place_of(path: Path, *, follow: bool = False) -> Iterator[OpenPlace]:
    """Where this path leads; with `follow` a link in its last step counts, too. Raises OSError."""
    walk = _Walk(path)
    try:
        yield walk.to_the_end(follow=follow)
    finally:
        os.close(walk.fd)


class _Walk:
    """The directory that has been reached, and the steps that are left, the next one last."""

    def __init__(self, path: Path) -> None:
        self.fd = os.open(".", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        self._steps: list[str] = []
        self._turn(path)

    def to_the_end(self, *, follow: bool) -> OpenPlace:
        """Every step but the last."""
        for _ in range(_MOST_STEPS):
            if not self._steps:
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
            name = self._steps.pop()
            last = not self._steps
            there = -1 if last and not follow else self._look(name, last=last)
            if there < 0:
                return OpenPlace(self.fd, name, _is_shared(os.fstat(self.fd)))
            if not stat.S_ISLNK(os.fstat(there).st_mode):
                if last:
                    os.close(there)
                    return OpenPlace(self.fd, name, _is_shared(os.fstat(self.fd)))
                self._enter(there)
                continue
            try:
                if last and _is_of_the_kernel(there):
                    return OpenPlace(self.fd, name, shared=False, kernels=True)
                target = self._target(there, name)
            finally:
                os.close(there)
            self._turn(target)
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))

    def _look(self, name: str, *, last: bool) -> int:
        """What has this name; -1 where the last step leads to nothing yet."""
        try:
            return os.open(name, _STEP, dir_fd=self.fd)
        except FileNotFoundError:
            if not last:
                raise
            return -1

    def _target(self, link: int, name: str) -> Path:
        holder = os.fstat(self.fd)
        if not _is_ours(os.fstat(link)) or (_is_shared(holder) and not holder.st_mode & stat.S_ISVTX):
            raise OSError(
                errno.ELOOP, f"{name!r} on the way to it is a link that somebody else could have put there"
            )
        return Path(os.readlink("", dir_fd=link))

    def _turn(self, path: Path) -> None:
        """Go on along this path."""
        if path.is_absolute():
            self._enter(os.open("/", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC))
        self._steps += reversed(path.parts[path.is_absolute() :])

    def _enter(self, there: int) -> None:
        os.close(self.fd)
        self.fd = there


def _is_ours(info: os.stat_result) -> bool:
    return info.st_uid in (0, os.geteuid())


def _is_shared(directory: os.stat_result) -> bool:
    """May anybody but root and us put something there?"""
    return not _is_ours(directory) or bool(directory.st_mode & (stat.S_IWGRP | stat.S_IWOTH))


def _is_of_the_kernel(link: int) -> bool:
    return os.fstat(link).st_dev == os.stat("/proc").st_dev
