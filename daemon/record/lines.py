"""The lines of a record from its end: from the last one that leaves nothing out, and then on as it grows.

Such lines come at short distances (file.py), however long the record is, and the first line of every
file is one; so nothing older is ever needed, neither from this file nor from FILE.1.

Nothing here decodes a line, and little is imported: `dasec explain` is to answer at once.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator
from typing import BinaryIO

from ..hosts.host import ROOM
from ..linux import regular_file
from .checksum import SEAL_LENGTH, unseal

FIRST_BYTES = b'{"dasec_record":'
"""How a header begins, and so every record."""

WHOLE = b',"held":['
"""What only lines have that leave nothing out: in a name, the quotes would have backslashes."""

LONGEST_BYTES = ROOM << 12
"""Of a line, 64 MiB: 4 KiB for each thread that there is room for."""

TOO_LONG = f"a line has more than {LONGEST_BYTES >> 20} MiB: give a file that `dasec run --record` wrote"

EMPTY = "is empty: give a file that `dasec run --record` wrote"

UNREAD = (0, 0)
"""The device and inode of no file: nothing was read yet."""


MALFORMED = (ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError)
"""What taking a line apart raises that is JSON, or is not, and no period: its checksum is only a checksum."""


class Unreadable(Exception):
    """The record cannot be read: one line that says what, where, and how to mend it."""


class RecordLines:
    """What a record tells from its last whole line on, and what is added to it later."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        self._identity = UNREAD
        self._offset = 0
        self._chain = 0

    def read(self) -> Iterator[bytes]:
        """The lines not read yet, each with the right checksum; none while the record is being turned over.
        A header, and b"" where reading begins anew: nothing of an earlier line holds. Raises Unreadable."""
        try:
            with regular_file.opened(self.path) as file:
                status = os.fstat(file.fileno())
                if (status.st_dev, status.st_ino) != self._identity or status.st_size < self._offset:
                    if self._identity == UNREAD and not status.st_size:
                        raise Unreadable(f"{self.path}: {EMPTY}")
                    self._identity = status.st_dev, status.st_ino
                    self._offset = self._begin(_mapped(file.fileno(), status.st_size))
                    yield b""
                file.seek(self._offset)
                for line in lines_of(file):
                    if len(line) > LONGEST_BYTES:
                        raise Unreadable(f"{self.path}: {TOO_LONG}")
                    if not line.endswith(b"\n"):
                        return
                    self._offset += len(line)
                    yield self._checked(line[:-1])
        except FileNotFoundError as error:
            if self._identity == UNREAD:
                raise Unreadable(f"{self.path}: {error.strerror}: give a readable record") from error
            return
        except OSError as error:
            raise Unreadable(f"{self.path}: {error.strerror}: give a readable record") from error

    def not_a_period(self, error: Exception) -> Unreadable:
        """Of the line read last: its checksum is right and its content is not."""
        try:
            with regular_file.opened(self.path) as file:
                number = file.read(self._offset).count(b"\n")
        except OSError:
            return Unreadable(f"{self.path}: a line is not a period ({error!r})")
        return Unreadable(f"{self.path}:{number}: not a period of a record ({error!r})")

    def _checked(self, line: bytes) -> bytes:
        opened = unseal(line, 0 if line.startswith(FIRST_BYTES) else self._chain)
        if opened is None:
            raise Unreadable(f"{self.path}: a checksum is wrong: `dasec replay` says where")
        self._chain = opened[1]
        return line

    def _begin(self, data: mmap.mmap | bytes) -> int:
        """Where the last whole line begins, or the header before it if there is none between."""
        if data[: len(FIRST_BYTES)] not in (FIRST_BYTES, b""):
            raise Unreadable(
                f"{self.path}: is not a DASEC record: give a file that `dasec run --record` wrote"
            )
        complete = data.rfind(b"\n") + 1
        start = data.rfind(b"\n", 0, max(data.rfind(WHOLE, 0, complete), 0)) + 1
        before = data[max(start - SEAL_LENGTH - 1, 0) : max(start - 1, 0)]
        self._chain = _chain_after(before) if before else 0
        return start


def lines_of(file: BinaryIO) -> Iterator[bytes]:
    """Its lines with their ends, the last one perhaps without. One that is too long comes in parts."""
    return iter(lambda: file.readline(LONGEST_BYTES + 1), b"")


def begins_anew(line: bytes) -> bool:
    """Is nothing of the lines before it needed to read on, and nothing of them true?"""
    return not line or line.startswith(FIRST_BYTES)


def _mapped(descriptor: int, size: int) -> mmap.mmap | bytes:
    """The file without reading it; nothing of an empty one."""
    return mmap.mmap(descriptor, size, prot=mmap.PROT_READ) if size else b""


def _chain_after(seal: bytes) -> int:
    """What the checksum of the line before says; 0 where it has none, which the next line's will show."""
    try:
        return int(seal[-len('00000000"}') : -len('"}')], 16)
    except ValueError:
        return 0
