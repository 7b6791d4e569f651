"""Follows the directory in which libvirt's QEMU driver keeps one file for each running domain.

libvirt writes a file anew beside the old one and renames it (virFileRewrite()): a file is always whole, and
every start, stop and hot-plug changes the directory's own time stamp: one stat(2) a period sees them all.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from typing import NamedTuple

from ..discovery import SCAN_NS
from . import status_file
from .status_file import DomainStatus, NotAStatus

DIRECTORY = "/run/libvirt/qemu"

YOUNG_NS = 20_000_000
"""A time stamp is as coarse as the kernel's tick (10 ms at HZ=100): what was stamped less than two ticks
before we looked may change once more without a new stamp."""

FILES_A_LOOK = 8
"""Files read in one look, at 0.35 ms each (docs/libvirt.md, "Cost"): when a hundred domains start at once a
period still keeps its time. Who has waited longest goes first: a guest can have its own file written anew at
each look, and must not keep others' from being read by that."""


class _Signature(NamedTuple):
    inode: int
    changed_ns: int
    size: int


class StatusDirectory:
    """The domains that have a file there, by file name."""

    def __init__(self, directory: str = DIRECTORY) -> None:
        self._directory = directory
        self._stamp_ns: int | None = None
        self._scanned_ns: int | None = None
        self._signatures: dict[str, _Signature] = {}
        self._due: dict[str, None] = {}  # in the order in which they became so
        self.domains: dict[str, DomainStatus] = {}
        self.changed: set[str] = set()
        """Files that came, went or changed at the last look."""
        self.trouble: str | None = None
        """Why nothing can be read here at present."""
        self.notices: dict[str, str] = {}
        """What is wrong with single files."""

    def look(self, clock_ns: int) -> None:
        """Look again."""
        self.changed = set()
        try:
            stamp_ns = os.stat(self._directory).st_mtime_ns
            again = self._scanned_ns is None or clock_ns - self._scanned_ns >= SCAN_NS
            if stamp_ns != self._stamp_ns or again:
                self._scan(stamp_ns, clock_ns)
            self.trouble = None
        except FileNotFoundError:
            self._forget_all()
            self.trouble = (
                f"libvirt: {self._directory} is not there: install and start libvirtd or virtqemud;"
                " going on without, and looking again"
            )
        except OSError as error:
            self.trouble = f"libvirt: {error.filename}: {error.strerror}: run as root. Looking again"

    def _scan(self, stamp_ns: int, clock_ns: int) -> None:
        budget = FILES_A_LOOK if self._scanned_ns is not None else None
        looked_ns = time.time_ns()
        self._scanned_ns = clock_ns
        present = dict(self._present())
        for name in self._signatures.keys() - present.keys():
            self._forget(name)
        due = {name for name, signature in present.items() if self._signatures.get(name) != signature}
        waiting = [name for name in self._due if name in due]
        self._due = dict.fromkeys([*waiting, *sorted(due.difference(waiting))])
        for name in list(self._due)[:budget]:
            del self._due[name]  # first: one that cannot be read keeps nobody else waiting
            self._read(name, present[name])
        settled = not self._due and abs(looked_ns - stamp_ns) >= YOUNG_NS
        self._stamp_ns = stamp_ns if settled else None

    def _present(self) -> Iterator[tuple[str, _Signature]]:
        """The status files that are there, and by what to tell one version from another."""
        with os.scandir(self._directory) as entries:
            for entry in entries:
                if entry.name.endswith(".xml"):
                    try:
                        status = entry.stat()
                    except FileNotFoundError:
                        continue
                    yield entry.name, _Signature(status.st_ino, status.st_mtime_ns, status.st_size)

    def _read(self, name: str, signature: _Signature) -> None:
        try:
            with open(f"{self._directory}/{name}", "rb") as file:
                text = file.read()
        except FileNotFoundError:
            return
        except IsADirectoryError:
            text = b""  # no status either
        self._signatures[name] = signature
        self.changed.add(name)
        self.notices.pop(name, None)
        try:
            self.domains[name] = status_file.parse(text)
        except NotAStatus as wrong:
            self.domains.pop(name, None)
            self.notices[name] = f"libvirt: {self._directory}/{name} is left alone: {wrong}"

    def _forget(self, name: str) -> None:
        del self._signatures[name]
        self.domains.pop(name, None)
        self.notices.pop(name, None)
        self.changed.add(name)

    def _forget_all(self) -> None:
        for name in tuple(self._signatures):
            self._forget(name)
        self._stamp_ns = None
