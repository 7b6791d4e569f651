"""The file that the record goes to: bounded, turned over when full, and never a reason to stop."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import stat
import time
from collections.abc import Callable
from pathlib import Path

from ..linux.sure_path import OpenPlace, place_of
from ..log import Announcer
from ..model import PolicyState
from ..policies import Parameters
from .encode import Encoder
from .entries import Entry
from .lines import FIRST_BYTES
from .provenance import Grounds

RETRY_NS = 10_000_000_000
"""How long a record that could not be written rests before the next try."""

WHOLE_BYTES = 1 << 18
"""How far apart the lines lie at least that leave nothing out, from which `dasec explain` and `dasec top`
read on (docs/record.md, "Reading from the end")."""

WHOLE_PART = 8
"""Such lines are one part in so many of the record at most, however many vCPUs there are."""


class NotARecord(Exception):
    """The file to record to holds something else."""


class RecordFile:
    """Appends lines to a file. An existing record moves aside as FILE.1, as does one that is full."""

    def __init__(
        self,
        path: Path,
        policy: str,
        parameters: Parameters,
        announcer: Announcer,
        *,
        max_bytes: int,
        files: int,
        clock: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self._path, self._policy, self._parameters = path, policy, parameters
        self._announcer = announcer
        self._max_bytes, self._files = max_bytes, files
        self._clock = clock
        self._descriptor = -1
        self._owed = b""
        self._size = self._whole_at = 0
        self._bounded = True
        self._opened: os.stat_result | None = None
        self._grounds = Grounds()
        self._encoder: Encoder | None = None
        self._retry_ns = 0
        refuse_foreign(path)
        self._guarded(self._turn_over)

    def write(self, entry: Entry, before: PolicyState) -> None:
        """Add one period, decided from the state `before`. A full disk, or a pipe that nobody empties, is
        announced, never raised or waited for."""
        self._grounds.note(entry)
        if self._clock() < self._retry_ns:
            return
        self._guarded(lambda: self._append(entry, before))

    def turn(self, policy: str, parameters: Parameters) -> None:
        """Another policy decides from the next period on: it gets a header of its own, and finds every knob
        as before the first."""
        self._policy, self._parameters = policy, parameters
        self._encoder, self._grounds = None, Grounds()

    def close(self) -> None:
        """End the record, with as much of its last line as fits into a pipe."""
        if self._owed:
            with contextlib.suppress(OSError):
                os.write(self._descriptor, self._owed)
        self._let_go()

    def _let_go(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
        self._descriptor, self._owed = -1, b""

    def _guarded(self, step: Callable[[], None]) -> None:
        try:
            step()
        except OSError as error:
            if not isinstance(error, BlockingIOError):
                self._let_go()  # else its reader, who is only slow, would take it for the end
            self._encoder = None
            self._retry_ns = self._clock() + RETRY_NS
            self._announcer.state(
                "record",
                f"record {self._path}: {error.strerror}: running on without a record,"
                f" trying again every {RETRY_NS // 10**9} s",
            )
        else:
            self._announcer.state("record", None, f"record {self._path}: writing again")

    def _append(self, entry: Entry, before: PolicyState) -> None:
        if self._descriptor < 0:
            self._open()
        elif self._bounded and self._size >= self._max_bytes:
            self._turn_over()
        elif self._bounded and not self._is_in_place():
            self._let_go()
            self._open()
        header = b""
        if self._encoder is None:
            self._encoder, header = Encoder.begin(self._policy, self._parameters, before)
        whole = bool(header) or self._size >= self._whole_at
        line = self._encoder.line(entry, self._grounds.rows(entry.period) if whole else None)
        if whole:
            self._whole_at = self._size + max(WHOLE_BYTES, WHOLE_PART * len(line))
        self._put(header + line)

    def _put(self, data: bytes) -> None:
        """All of `data` or none of it."""
        if not self._bounded:
            self._offer(data)
        elif os.write(self._descriptor, data) != len(data):
            os.ftruncate(self._descriptor, self._size)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self._size += len(data)

    def _offer(self, data: bytes) -> None:
        """To a pipe, a terminal or another device. What has no room is owed, and goes before all else: half a
        line is never taken for a whole one. Raises BlockingIOError if even what was owed has no room."""
        owed, waiting = len(self._owed), self._owed + data
        try:
            written = os.write(self._descriptor, waiting)
        except BlockingIOError:
            written = 0
        if written < owed:
            self._owed = self._owed[written:]
            raise BlockingIOError(errno.EAGAIN, "whoever reads it does not keep up")
        self._owed = waiting[written:]

    def _open(self) -> None:
        with place_of(self._path, follow=True) as place:
            self._descriptor = place.open(os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NONBLOCK, 0o640)
        status = os.fstat(self._descriptor)
        if place.shared and not _is_our_file(status):
            raise PermissionError(errno.EPERM, "somebody else has put it there")
        self._bounded = stat.S_ISREG(status.st_mode)
        if self._bounded:
            _lock(self._descriptor, fcntl.LOCK_EX)
        os.set_blocking(self._descriptor, self._bounded)
        self._size, self._opened = status.st_size, status
        self._encoder = None

    def _is_in_place(self) -> bool:
        """Not where somebody has moved or removed it: its readers look for it by its name."""
        try:
            return self._opened is not None and os.path.samestat(self._opened, os.stat(self._path))
        except FileNotFoundError:
            return False
        except OSError:
            return True

    def _turn_over(self) -> None:
        """FILE becomes FILE.1, that FILE.2 and so on; the oldest goes."""
        self._let_go()
        with place_of(self._path, follow=True) as place:
            if _has_content(place):
                _refuse_written(place)
                for number in range(self._files - 1, 0, -1):
                    older, oldest = (numbered(place.name, one) for one in (number - 1, number))
                    with contextlib.suppress(FileNotFoundError):
                        os.replace(older, oldest, src_dir_fd=place.fd, dst_dir_fd=place.fd)
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(place.name, dir_fd=place.fd)
        self._open()


def numbered(name: str, number: int) -> str:
    """The name of the record that is `number` turns old."""
    return f"{name}.{number}" if number else name


def _has_content(place: OpenPlace) -> bool:
    try:
        status = os.stat(place.name, dir_fd=place.fd, follow_symlinks=place.kernels)
    except FileNotFoundError:
        return False
    return stat.S_ISREG(status.st_mode) and status.st_size > 0 and not place.kernels


def _refuse_written(place: OpenPlace) -> None:
    """Raise OSError where another process records to it: its readers would take ours for its record."""
    descriptor = place.open(os.O_RDONLY | os.O_NONBLOCK)
    try:
        _lock(descriptor, fcntl.LOCK_SH)
    finally:
        os.close(descriptor)


def _lock(descriptor: int, how: int) -> None:
    """Until it is closed. Raises OSError where another process has it."""
    try:
        fcntl.flock(descriptor, how | fcntl.LOCK_NB)
    except BlockingIOError:
        raise OSError(errno.EBUSY, "another process records to it") from None
    except OSError:
        return  # a file system without locks


def _is_our_file(status: os.stat_result) -> bool:
    """A file of ours that has no other name: others could have brought a pipe, or another file."""
    return stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid() and status.st_nlink == 1


def refuse_foreign(path: Path) -> None:
    """Raise NotARecord rather than move somebody else's file aside. A power cut may leave less of a record
    than its first bytes, and zeros after it (ext4 knew its length and not its data): a service that refused
    that would stay down."""
    try:
        with (
            place_of(path, follow=True) as place,
            open(place.open(os.O_RDONLY | os.O_NONBLOCK), "rb") as file,
        ):
            head = file.read(len(FIRST_BYTES)) if stat.S_ISREG(os.fstat(file.fileno()).st_mode) else b""
    except OSError:
        return
    if not FIRST_BYTES.startswith(head.rstrip(b"\0")):
        raise NotARecord(f"{path}: is not a DASEC record: give another file to record to")
