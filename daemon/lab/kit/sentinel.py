"""A small process that cleans up should the demo die without doing so: python -m dasec.lab.kit.sentinel.

It waits until its standard input closes. The demo keeps the other end open and, at an orderly end,
writes a word first. It inherits the demo's lock, so no second demo starts while it cleans up.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from .tree import Tree
from .workspace import clean, lock_file

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


def main(version: str, top: str, directory: str) -> None:
    """Wait for the demo's end; clean up unless it said that it had."""
    if sys.stdin.buffer.read() != DISMISSED:
        clean(Tree(int(version), Path(top)), Path(directory))
        lock_file(Path(directory)).unlink(missing_ok=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
