"""What a small file of the kernel's says, where it matters not why it says nothing."""

from __future__ import annotations

from pathlib import Path


def one_line(path: Path) -> str:
    """Without what surrounds it; empty if there is no such file, or it cannot be read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""
