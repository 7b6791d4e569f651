"""The real journal over a directory of the machine: two names, `journal` and `journal.new`.

A crash inside a write leaves any prefix of it; a full file system takes none of it, or half.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import cast

from dasec.linux.namespaces import Namespaces
from dasec.safety.journal import codec
from dasec.safety.journal.directory import Directory
from dasec.safety.journal.journal import NAME, Journal
from dasec.safety.journal.ledger import Ledger
from dasec.safety.journal.salvage import salvage

from .files import STATE, Os, machine, renamed
from .machine import Killed, Machine, Step

BOOT = "00000000-0000-0000-0000-000000000000"
ORIGIN = codec.Origin(BOOT, Namespaces(1, 2))
SEED = codec.line_seed(BOOT)


class Torn(Killed):
    """Killed inside a write to the journal, in the middle of line `place // 2` or just before its end."""

    def __init__(self, place: int) -> None:
        super().__init__(place)
        self.place = place


class Full(OSError):
    """No room, or (`half`) room for half of what is written."""

    def __init__(self, *, half: bool) -> None:
        super().__init__(errno.ENOSPC, "No space left on device")
        self.half = half


class MemoryDirectory:
    """Stands for directory.py, whose own tests have a real file system."""

    path = Path("/run/dasec")

    def create(self, name: str) -> int:
        """An empty file."""
        machine().files[name] = b""
        return Os().open(f"{STATE}/{name}", 0)

    def rename(self, old: str, new: str) -> None:
        """Atomically."""
        machine().step(Step("journal", True, "renamed"))
        machine().files[new] = machine().files.pop(old)
        renamed(f"{STATE}/{old}", f"{STATE}/{new}")

    def remove(self, name: str) -> None:
        """If it is there."""
        machine().files.pop(name, None)

    def close(self) -> None:
        """It was never opened."""


def open_journal() -> Journal:
    """As Journal.open: whatever the bytes still say, and a file written anew from that."""
    place = cast(Directory, MemoryDirectory())
    journal = Journal(place, ORIGIN, read(machine().files.get(NAME, b"")))
    journal._start()
    return journal


def append(one: Machine, name: str, data: bytes) -> int:
    """write(2) to a file of the directory."""
    lines = data.splitlines(keepends=True)
    places = 2 * len(lines) if name == NAME else 1
    try:
        one.step(Step("journal", True, " ".join(_payloads(lines)), places))
    except Torn as torn:
        at, whole = divmod(torn.place, 2)
        rest = lines[at][:-1] if whole else lines[at][: len(lines[at]) // 2]
        one.files[name] += b"".join(lines[:at]) + rest
        raise
    except Full as full:
        if not full.half:
            raise
        data = data[: len(data) // 2]
    one.files[name] += data
    return len(data)


def _payloads(lines: list[bytes]) -> Iterator[str]:
    return (line.decode().split(" ", 2)[-1].strip() for line in lines)


def shorten(one: Machine, journal: Journal | None) -> None:
    """The file says the same with fewer words from now on, so that states with one meaning are one state."""
    data = one.files.get(NAME, b"")
    if data:
        payloads = [codec.encode(entry) for entry in known(data).entries(one.now())]
        one.files[NAME] = codec.encode_header(ORIGIN) + codec.frames(payloads, 1, SEED).encode()
    if journal is not None and journal._fd >= 0:
        journal._sequence, journal._size = one.files[NAME].count(b"\n"), len(one.files[NAME])


def read(data: bytes) -> Ledger:
    """What a journal says."""
    return salvage(data, ORIGIN, NAME, exists=bool(data)).ledger


@lru_cache(maxsize=4096)
def known(data: bytes) -> Ledger:
    """The same for whoever only looks at it: many states have the same journal."""
    return read(data)
