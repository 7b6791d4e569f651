"""The engines as Debian has them."""

from __future__ import annotations

import shutil
from pathlib import Path

from guests.packages import unpacked

CACHE = Path("/var/cache/dasec-guest/engines")
PACKAGES = ("docker.io", "podman", "containerd", "runc", "crun", "lxc")
TOOLS = ("apt-get", "dpkg-deb", "unshare", "nsenter", "busybox")


def missing() -> list[str]:
    """What this needs and this machine lacks."""
    return [tool for tool in TOOLS if shutil.which(tool) is None]


def tree() -> Path:
    """The folder with all of them."""
    return unpacked(PACKAGES, CACHE)
