"""Where a run's results shall go, tried before it begins."""

from __future__ import annotations

from pathlib import Path

from ...errors import ExitStatus, Refusal


def ensure_writable(path: Path) -> None:
    """Makes its folder, and leaves the file as it is. Refuses (status 2) what cannot be written."""
    try:
        existed = path.exists()
        path.parent.mkdir(parents=True, exist_ok=True)
        path.open("ab").close()
        if not existed:
            path.unlink()
    except OSError as error:
        raise Refusal(ExitStatus.USAGE, f"{path}: {error.strerror}: name another place") from error
