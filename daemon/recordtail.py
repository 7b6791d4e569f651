"""Reading a record from its end: from the last line that leaves nothing out, and then on as it grows.

Such lines come at short distances (recordfile.py), however long the record is, and the first line of every
file is one; so nothing older is ever needed, neither from this file nor from FILE.1.
"""

from __future__ import annotations

import mmap
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from .model import Period
from .record import SEAL_LENGTH, Decoder, Layout, PeriodLine, unseal

FIRST_BYTES = b'{"dasec_record":'
"""How a header begins, and so every record."""

WHOLE = b',"held":['
"""What only lines have that leave nothing out: in a name, the quotes would have backslashes."""


UNREAD = (0, 0)
"""The device and inode of no file: nothing was read yet."""


class Unreadable(Exception):
    """The record cannot be read: one line that says what, where, and how to mend it."""


class Seen(NamedTuple):
    """One period of a record: its values, its line, and whom the line's numbers mean."""

    period: Period
    line: PeriodLine
    layout: Layout


class RecordTail:
    """What a record tells from its last whole line on, and what is added to it later."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._identity = UNREAD
        self._offset = 0
        self._chain = 0
        self._decoder = Decoder()

    def read(self) -> Iterator[Seen]:
        """The periods not read yet; none while the record is being turned over. Raises Unreadable."""
        try:
            with self.path.open("rb") as file:
                status = os.fstat(file.fileno())
                if not stat.S_ISREG(status.st_mode):
                    raise Unreadable(
                        f"{self.path}: is not a regular file: give a record that can be read again"
                    )
                if (status.st_dev, status.st_ino) != self._identity or status.st_size < self._offset:
                    self._identity = status.st_dev, status.st_ino
                    self._offset = self._begin(_mapped(file.fileno(), status.st_size))
                file.seek(self._offset)
                data = file.read()
        except FileNotFoundError as error:
            if self._identity == UNREAD:
                raise Unreadable(f"{self.path}: {error.strerror}: give a readable record") from error
            return
        except OSError as error:
            raise Unreadable(f"{self.path}: {error.strerror}: give a readable record") from error
        end = data.rfind(b"\n") + 1
        self._offset += end
        for line in data[:end].splitlines():
            if line.startswith(FIRST_BYTES):
                self._decoder = Decoder()
                self._chain = unsealed(line, 0, self.path)
            else:
                self._chain = unsealed(line, self._chain, self.path)
                yield self._decoded(line)

    def _begin(self, data: mmap.mmap | bytes) -> int:
        """Where the last whole line begins, or the header before it if there is none between."""
        if data[: len(FIRST_BYTES)] not in (FIRST_BYTES, b""):
            raise Unreadable(
                f"{self.path}: is not a DASEC record: give a file that `dasec run --record` wrote"
            )
        self._decoder = Decoder()
        complete = data.rfind(b"\n") + 1
        start = data.rfind(b"\n", 0, max(data.rfind(WHOLE, 0, complete), 0)) + 1
        before = data[max(start - SEAL_LENGTH - 1, 0) : max(start - 1, 0)]
        self._chain = _chain_after(before) if before else 0
        return start

    def _decoded(self, line: bytes) -> Seen:
        try:
            period, parsed = self._decoder.period(line)
        except (ValueError, KeyError, TypeError, IndexError) as error:
            raise Unreadable(
                f"{self.path}: a line is not a period ({error!r}): `dasec replay` says which"
            ) from error
        return Seen(period, parsed, self._decoder.layout)


def unsealed(line: bytes, chain: int, path: Path) -> int:
    """The chain after `line`, whose checksum must be right."""
    opened = unseal(line, chain)
    if opened is None:
        raise Unreadable(f"{path}: a checksum is wrong: `dasec replay` says where")
    return opened[1]


def _mapped(descriptor: int, size: int) -> mmap.mmap | bytes:
    """The file without reading it; nothing of an empty one."""
    return mmap.mmap(descriptor, size, prot=mmap.PROT_READ) if size else b""


def _chain_after(seal: bytes) -> int:
    """What the checksum of the line before says; 0 where it has none, which the next line's will show."""
    try:
        return int(seal[-len('00000000"}') : -len('"}')], 16)
    except ValueError:
        return 0
