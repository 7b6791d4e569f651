"""The engines as Debian has them, unpacked beside the machine's own files: nothing is installed."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

from guests.boot import one_at_a_time

CACHE = Path("/var/cache/dasec-guest/engines")
PACKAGES = ("docker.io", "podman", "containerd", "runc", "lxc")
PLACES = ("usr", "etc", "var/lib")
"""Where the packages have something."""

TOOLS = ("apt-get", "dpkg-deb", "unshare", "nsenter", "busybox")


def missing() -> list[str]:
    """What this needs and this machine lacks."""
    return [tool for tool in TOOLS if shutil.which(tool) is None]


def tree() -> Path:
    """A folder with all of these packages that the machine has not installed, and what they depend on. It is
    made anew when either changes."""
    wanted = _said("apt-get", "--simulate", "--no-install-recommends", "install", *PACKAGES)
    missing = "\n".join(line for line in wanted.splitlines() if line.startswith("Inst "))
    made = CACHE / hashlib.sha256(missing.encode()).hexdigest()[:16]
    if not made.exists():
        with one_at_a_time(CACHE):
            if not made.exists():  # made by whoever was here before us
                _make(made)
    return made


def _make(made: Path) -> None:
    archives, unfinished = CACHE / "archives", CACHE / "unfinished"
    for folder in (archives, unfinished):
        shutil.rmtree(folder, ignore_errors=True)
    (archives / "partial").mkdir(parents=True)
    # Downloading only: whoever installs something meanwhile need not be waited for.
    apart = ("-o", "Debug::NoLocking=1", "-o", f"Dir::Cache::archives={archives}")
    _said("apt-get", "--yes", "--no-install-recommends", "--download-only", *apart, "install", *PACKAGES)
    for archive in sorted(archives.glob("*.deb")):
        _said("dpkg-deb", "--extract", str(archive), str(unfinished))
    for place in PLACES:
        (unfinished / place).mkdir(parents=True, exist_ok=True)
    unfinished.rename(made)
    shutil.rmtree(archives)


def _said(*command: str) -> str:
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
