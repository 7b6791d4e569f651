"""Packages as Debian has them, unpacked beside the machine's own files: nothing is installed."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from guests.boot import one_at_a_time

PLACES = ("usr", "etc", "var/lib")
"""Where packages have something."""


def unpacked(packages: Sequence[str], cache: Path) -> Path:
    """A folder with all of these packages that the machine has not installed, and what they depend on. It is
    made anew when either changes."""
    wanted = said("apt-get", "--simulate", "--no-install-recommends", "install", *packages)
    missing = "\n".join(line for line in wanted.splitlines() if line.startswith("Inst "))
    made = cache / hashlib.sha256(missing.encode()).hexdigest()[:16]
    if not made.exists():
        with one_at_a_time(cache):
            if not made.exists():  # made by whoever was here before us
                _make(packages, cache, made)
    return made


def _make(packages: Sequence[str], cache: Path, made: Path) -> None:
    archives, unfinished = cache / "archives", cache / "unfinished"
    for folder in (archives, unfinished):
        shutil.rmtree(folder, ignore_errors=True)
    (archives / "partial").mkdir(parents=True)
    # Downloading only: whoever installs something meanwhile need not be waited for.
    apart = ("-o", "Debug::NoLocking=1", "-o", f"Dir::Cache::archives={archives}")
    said("apt-get", "--yes", "--no-install-recommends", "--download-only", *apart, "install", *packages)
    for archive in sorted(archives.glob("*.deb")):
        said("dpkg-deb", "--extract", str(archive), str(unfinished))
    lead_inside(unfinished)
    for place in PLACES:
        (unfinished / place).mkdir(parents=True, exist_ok=True)
    unfinished.rename(made)
    shutil.rmtree(archives)


def lead_inside(root: Path) -> None:
    """Links of packages to /etc, as Java has many, lead to what they have there themselves."""
    for link in root.rglob("*"):
        if link.is_symlink() and (target := link.readlink()).is_absolute():
            own = root / target.relative_to("/")
            if os.path.lexists(own):
                link.unlink()
                link.symlink_to(os.path.relpath(own, link.parent))


def said(*command: str) -> str:
    """What a program of the machine says to this. RuntimeError, with what it complains of, if it fails."""
    done = subprocess.run(
        command,
        env={**os.environ, "LC_ALL": "C", "DEBIAN_FRONTEND": "noninteractive"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout
