"""What every guest has in common: packing an initramfs, running QEMU until its end, reading the console; and
that what it needs is fetched once."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

EXIT_MARK = "GUEST-EXIT:"
CPIO = ("cpio", "-o", "-H", "newc", "--quiet", "--reproducible", "--owner=0:0")

WITH_US = ("setpriv", "--pdeathsig", "KILL")
"""Before a command: it does not outlive whoever started it, however that ends. QEMU's guest may compute for
ever."""


@dataclass(frozen=True, slots=True)
class GuestRun:
    """What came out of a guest: the command's exit status (None: it never finished) and the console."""

    exit_status: int | None
    console: str


@contextmanager
def one_at_a_time(cache: Path) -> Iterator[None]:
    """Among all who fill this folder: the tests, the errands that run beside them, experiments."""
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / "lock").open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def pack_initramfs(tree: Path, init: str) -> Path:
    """The archive of `tree`, beside it, with busybox and this script as the first process."""
    (tree / "bin").mkdir(parents=True, exist_ok=True)
    shutil.copy(shutil.which("busybox") or "/bin/busybox", tree / "bin/busybox")
    (tree / "init").write_text(init)
    (tree / "init").chmod(0o755)
    return pack(tree)


def pack(tree: Path) -> Path:
    """The archive of `tree`, beside it. Without times: a counted guest unpacks another time in another number
    of instructions, and an image that is built again is the same."""
    image = tree.with_suffix(".cpio")
    paths = sorted(tree.rglob("*"))
    for path in paths:
        os.utime(path, (0, 0), follow_symlinks=False)
    names = "\n".join(str(path.relative_to(tree)) for path in paths)
    with image.open("wb") as sink:
        subprocess.run(CPIO, input=names.encode(), stdout=sink, cwd=tree, check=True)
    return image


def run_until_end(command: Sequence[str], timeout_s: int) -> GuestRun:
    """Starts QEMU and returns what the guest said, its end or not."""
    try:
        done = subprocess.run(
            [*WITH_US, *command],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=timeout_s,
            check=False,
        )
        console = done.stdout + done.stderr
    except subprocess.TimeoutExpired as expired:
        console = (expired.stdout or b"") + f"\n(no end after {timeout_s} s)\n".encode()
    text = console.decode(errors="replace").replace("\r\n", "\n")
    status = re.search(rf"^{EXIT_MARK}(\d+)$", text, re.MULTILINE)
    return GuestRun(int(status.group(1)) if status else None, text)
