"""The one place on the host that belongs to whoever measures: /run/dasec-demo, its lock, and its groups."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

from ...errors import ExitStatus, Refusal
from .tree import Tree

DIRECTORY = Path("/run/dasec-demo")
LOCK_PATIENCE_S = 15.0
"""Longer than the sentinel of a killed one needs to clean up (tree.py: 5 s + 5 s)."""

V2_MARK = "cpu-handed-on"
"""Exists while the cgroup v2 root hands on the cpu controller only because we asked for it."""


def lock(directory: Path = DIRECTORY) -> int:
    """The descriptor by which nobody else measures. A sentinel that still cleans up holds it, too."""
    path = lock_file(directory)
    deadline = time.monotonic() + LOCK_PATIENCE_S
    while time.monotonic() < deadline:
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise Refusal(ExitStatus.HOST, f"{path}: {error.strerror}: run as root") from error
        if _lock_now(descriptor, path):
            return descriptor
        os.close(descriptor)
        time.sleep(0.1)
    raise Refusal(ExitStatus.FAILED, f"{path}: somebody measures: wait for its end")


def _lock_now(descriptor: int, path: Path) -> bool:
    """False if somebody has it, or removed the file before we got it."""
    with contextlib.suppress(BlockingIOError, FileNotFoundError):
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return os.fstat(descriptor).st_ino == path.stat().st_ino
    return False


def unlock(descriptor: int, directory: Path = DIRECTORY) -> None:
    """The next measurement may start; the file goes as well."""
    lock_file(directory).unlink(missing_ok=True)
    os.close(descriptor)


def lock_file(directory: Path) -> Path:
    """Beside the directory, which comes and goes."""
    return directory.with_suffix(".lock")


def clean(tree: Tree, directory: Path = DIRECTORY) -> None:
    """Leave nothing: processes, groups, the v2 root's controller if we asked for it, files. Idempotent."""
    tree.sweep()
    if (directory / V2_MARK).exists():
        with contextlib.suppress(OSError):
            (tree.top.parent / "cgroup.subtree_control").write_text("-cpu")
    shutil.rmtree(directory, ignore_errors=True)


@contextlib.contextmanager
def prepared(tree: Tree, directory: Path = DIRECTORY) -> Iterator[Path]:
    """An empty directory, whatever an earlier one left; all is cleaned at the end."""
    clean(tree, directory)
    try:
        directory.mkdir(mode=0o755)
        if tree.version == 2 and not _hands_on_cpu(tree):
            (directory / V2_MARK).touch()
        yield directory
    finally:
        clean(tree, directory)


def _hands_on_cpu(tree: Tree) -> bool:
    return "cpu" in (tree.top.parent / "cgroup.subtree_control").read_text().split()
