"""The guest's file, compiled once and kept under a hash of its sources."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from guests.boot import one_at_a_time
from guests.built import REPOSITORY, HostCannotError

SOURCES = REPOSITORY / "vm-images/bare"
TOOLS = {"make": "make", "cc": "gcc", "ld": "binutils"}
"""Programs, and Debian's packages that have them."""


def bare_guest() -> Path:
    """The ELF file; HostCannotError where a tool is missing."""
    kept = _kept()
    if not kept.exists():
        with one_at_a_time(kept.parent):
            if not kept.exists():
                _build(kept)
    return kept


def why_not_built() -> str | None:
    """Why the file is neither there nor can be built, in one line; None: no reason is known."""
    missing = sorted({package for tool, package in TOOLS.items() if shutil.which(tool) is None})
    if _kept().exists() or not missing:
        return None
    return f"missing on this machine: {' '.join(missing)}: install them"


def _build(kept: Path) -> None:
    if why := why_not_built():
        raise HostCannotError(why)
    with tempfile.TemporaryDirectory(dir=kept.parent, prefix="bare-") as scratch:
        command = ["make", "-s", "-C", str(SOURCES), f"BUILD={scratch}"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(command)}: {done.stderr}")
        (Path(scratch) / "bare.elf").rename(kept)


def _kept() -> Path:
    below = Path("/var/cache") if os.geteuid() == 0 else Path.home() / ".cache"
    return below / "dasec-bare" / f"bare-{key()}.elf"


def key() -> str:
    """A hash of its sources."""
    digest = hashlib.sha256()
    for path in (SOURCES / "Makefile", SOURCES / "bare.ld", *sorted((SOURCES / "src").iterdir())):
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]
