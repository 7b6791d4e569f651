"""The file for node_exporter's textfile collector, which must not outlive what it tells of.

A daemon that is killed cannot remove its file, and node_exporter would go on to serve it. So where it is
stands beside the journal, and whoever puts the knobs back, or starts next, removes it: the present
configuration may name another file, or none.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from ..linux import whole_file

NOTE = "textfile"
"""In the daemon's directory: the path of the file."""


class Textfile:
    """One daemon's file. Without a directory nobody else can remove it."""

    def __init__(self, path: Path, directory: Path | None) -> None:
        self.path, self._directory = path, directory

    def put(self, text: bytes) -> None:
        """Raises OSError."""
        if self._directory is not None and not (self._directory / NOTE).exists():
            whole_file.replace(self._directory / NOTE, bytes(self.path))
        whole_file.replace(self.path, text)

    def remove(self) -> None:
        """At the daemon's end."""
        with contextlib.suppress(OSError):
            whole_file.remove(self.path)
        if self._directory is not None:
            sweep(self._directory)


def sweep(directory: Path) -> None:
    """Remove the file that an ended daemon of this directory left, and the note of it."""
    note = directory / NOTE
    with contextlib.suppress(OSError, ValueError):
        whole_file.remove(Path(os.fsdecode(note.read_bytes())))
    with contextlib.suppress(OSError):
        whole_file.remove(note)
