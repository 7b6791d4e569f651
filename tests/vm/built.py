"""Our patched kernel, from the cache of its build or built now."""

from __future__ import annotations

import subprocess
from pathlib import Path

BUILD = Path(__file__).resolve().parents[2] / "kvm-patches/build"
SAID = 4000

HOST_CANNOT = 3
"""Exit status of the build where a tool, the source or space is missing."""


class HostCannotError(Exception):
    """This host cannot build it; the text is the build's own line."""


def patched_image(*options: str) -> Path:
    """The bzImage of `kvm-patches/build guest OPTIONS`."""
    done = subprocess.run([str(BUILD), "guest", *options], capture_output=True, text=True, check=False)
    if done.returncode == HOST_CANNOT:
        raise HostCannotError(done.stderr.strip().splitlines()[-1])
    if done.returncode != 0:
        raise RuntimeError(f"{BUILD.name} guest: {done.stderr[-SAID:]}")
    return Path(done.stdout.splitlines()[-1])
