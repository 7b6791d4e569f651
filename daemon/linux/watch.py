"""Who wrote a cgroup file? inotify reports every write(2), so an untouched file need not be read again.

Works on v1 and v2 (docs/measurements.md); the kernel's own changes are not reported, but it
makes none to weights. Where the watches run out, `complete` is False and the caller reads.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct

_IN_MODIFY = 0x002
_EVENT = struct.Struct("iIII")
_BUFFER_BYTES = 65536

_READS = 8
"""Buffers a look: twice the kernel's queue (fs.inotify.max_queued_events: 16 384 of 16 bytes). Whoever writes
faster than we read must not keep us here: the rest is seen at the next look, or as an overflow."""

_libc = ctypes.CDLL(None, use_errno=True)


class FileWatch:
    """Which of the watched files were written to since the last look."""

    __slots__ = ("_descriptor", "_number_of", "_path_of", "complete")

    def __init__(self) -> None:
        self._descriptor: int = _libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        self._path_of: dict[int, str] = {}
        self._number_of: dict[str, int] = {}
        self.complete = self._descriptor >= 0
        """False once a file could not be watched: then read every file. Lost events name every file."""

    def add(self, path: str) -> None:
        """Watch one more file."""
        number = -1
        if self._descriptor >= 0:
            number = _libc.inotify_add_watch(self._descriptor, os.fsencode(path), _IN_MODIFY)
        if number >= 0:
            self._path_of[number] = path
            self._number_of[path] = number
        elif ctypes.get_errno() != errno.ENOENT:
            self.complete = False

    def drop(self, path: str) -> None:
        """Watch it no longer."""
        number = self._number_of.pop(path, None)
        if number is not None:
            del self._path_of[number]
            _libc.inotify_rm_watch(self._descriptor, number)

    def written(self) -> frozenset[str]:
        """The files written to since the last call, by whomever."""
        paths: set[str] = set()
        if self._descriptor < 0:
            return frozenset()
        for _ in range(_READS):
            try:
                events = os.read(self._descriptor, _BUFFER_BYTES)
            except BlockingIOError:
                break
            offset = 0
            while offset < len(events):
                number, _, _, length = _EVENT.unpack_from(events, offset)
                offset += _EVENT.size + length
                if number < 0:
                    paths.update(self._number_of)
                elif number in self._path_of:
                    paths.add(self._path_of[number])
        return frozenset(paths)

    def close(self) -> None:
        """End all watches."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
        self._descriptor = -1
        self.complete = False
