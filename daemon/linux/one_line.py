"""What a small file of the kernel's says, where it matters not why it says nothing."""

from __future__ import annotations

from os import PathLike


def one_line(path: str | PathLike[str]) -> str:
    """Without what surrounds it; empty if there is no such file, or it cannot be read."""
    try:
        with open(path, "rb", buffering=0) as file:
            return file.read().decode(errors="replace").strip()
    except OSError:
        return ""
