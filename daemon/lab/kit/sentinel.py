"""A small process that cleans up if who measures dies without doing so: python -m dasec.lab.kit.sentinel.

It waits until its standard input closes. Who measures keeps the other end open and, at an orderly end,
writes a word first. It inherits the lock, so nobody else starts while it cleans up.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from .tree import Tree
from .workspace import DIRECTORY, clean, lock, lock_file, prepared, unlock

DISMISSED = b"done\n"


@contextlib.contextmanager
def watching(tree: Tree, directory: Path, lock: int) -> Iterator[None]:
    """A sentinel stands by while the block runs."""
    process = subprocess.Popen(
        [
            sys.executable,
            "-P",
            "-m",
            "dasec.lab.kit.sentinel",
            str(tree.version),
            str(tree.top),
            str(directory),
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        start_new_session=True,
        pass_fds=(lock,),
    )
    try:
        yield
    finally:
        with contextlib.suppress(BrokenPipeError):
            process.communicate(DISMISSED)


@contextlib.contextmanager
def measuring(tree: Tree, directory: Path = DIRECTORY) -> Iterator[Path]:
    """A directory for files of runs, and nobody else measures. Groups, processes and files are gone
    afterwards, killed or not."""
    descriptor = lock(directory)
    try:
        with watching(tree, directory, descriptor), prepared(tree, directory):
            yield directory
    finally:
        unlock(descriptor, directory)


def main(version: str, top: str, directory: str) -> None:
    """Wait for the end; clean up unless that was done."""
    if sys.stdin.buffer.read() != DISMISSED:
        clean(Tree(int(version), Path(top)), Path(directory))
        lock_file(Path(directory)).unlink(missing_ok=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
