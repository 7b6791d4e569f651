"""What our own builds make: the patched kernel, one with sched_ext, images; from caches or built now."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
BUILD = str(REPOSITORY / "kvm-patches/build")
KERNEL = (BUILD, "guest")
NEXT = (BUILD, "guest-6.12")
SCHED_EXT = (BUILD, "sched_ext")
IMAGES = (sys.executable, str(REPOSITORY / "vm-images/build.py"))
SAID = 4000

HOST_CANNOT = 3
"""Exit status of a build where a tool, the source or space is missing."""


class HostCannotError(Exception):
    """This host cannot build it; the text is the build's own line."""


def patched_image(*options: str) -> Path:
    """The bzImage of `kvm-patches/build guest OPTIONS`."""
    return _built([*KERNEL, *options])


def next_image(*options: str) -> Path:
    """The bzImage of `kvm-patches/build guest-6.12 OPTIONS`."""
    return _built([*NEXT, *options])


def sched_ext_image(*options: str) -> Path:
    """The bzImage of an unpatched kernel with sched_ext: of `kvm-patches/build sched_ext OPTIONS`."""
    return _built([*SCHED_EXT, *options])


def guest_image(name: str) -> Path:
    """The folder of `vm-images/build.py NAME`."""
    return _built([*IMAGES, name])


def check_guest_image(name: str) -> Path:
    """Where it is, or would be. HostCannotError if it is not there and this host lacks what builds it."""
    return _built([*IMAGES, "--check", name])


def _built(command: Sequence[str]) -> Path:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode == HOST_CANNOT:
        raise HostCannotError(done.stderr.strip().splitlines()[-1])
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr[-SAID:]}")
    return Path(done.stdout.splitlines()[-1])
