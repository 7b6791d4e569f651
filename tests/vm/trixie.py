"""A Debian 13 on a disk, from which a guest boots, twice if need be: what it changed is still there."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from guests.boot import one_at_a_time
from tests.vm import systemd

CACHE = Path("/var/cache/dasec-guest/trixie")
"""With a lock of its own: nobody has to wait for it who wants a kernel."""

SUITE = "trixie"
PACKAGES = ("systemd-sysv", "python3", "libbpf1")
"""What a Debian needs to be booted, and what our package asks for."""

APART = ("unshare", "--mount", "--mount-proc", "--pid", "--fork", "--kill-child")
"""Whoever ends it half-way ends all of it, and no mount is left."""

DEBSTRAP = ("mmdebstrap", "--quiet", "--variant=apt", f"--include={','.join(PACKAGES)}")
SIZE = "2G"
"""Most of it is a hole."""

TOOLS = ("unshare", "mmdebstrap", "mke2fs")
MODULES = ("virtio_pci", "virtio_blk", "crc32c_generic", "ext4", "9pnet_virtio", "9p")

NEEDED = {"systemd-journal-flush.service", "systemd-tmpfiles-setup.service"}
"""The log is kept: the second boot reads that of the first. And what PrivateTmp= has left in /var/tmp after a
power cut goes at the next boot."""

NEEDLESS = (
    *(unit for unit in systemd.NEEDLESS if unit not in NEEDED),
    *("getty.target", "serial-getty@ttyS0.service", "systemd-logind.service", "ldconfig.service"),
    *("systemd-user-sessions.service", "systemd-journal-catalog-update.service"),
)

TARGET = "multi-user.target"

FROM_DISK = f"""#!/bin/busybox sh
busybox mkdir -p /proc /sys /dev /root
busybox mount -t proc proc /proc
busybox mount -t sysfs sys /sys
busybox mount -t devtmpfs dev /dev
for module in /modules/*; do busybox insmod $module; done
busybox mount -t ext4 /dev/vda /root
for d in proc sys dev; do busybox mount -o move /$d /root/$d; done
busybox mount -t tmpfs tmpfs /root/run
busybox mount -t 9p -o trans=virtio,version=9p2000.L,msize=262144,ro given /root/mnt
busybox cp /job.sh /root/run/
busybox mkdir -p /root/run/systemd/system/{TARGET}.wants
busybox ln -s ../job.service /root/run/systemd/system/{TARGET}.wants
"""


def missing() -> tuple[str, ...]:
    """What this needs and this machine lacks."""
    tools = tuple(tool for tool in TOOLS if shutil.which(tool) is None)
    return tools if os.geteuid() == 0 else ("root", *tools)


def disk(folder: Path) -> Path:
    """A fresh Debian 13 in `folder`."""
    made = folder / "disk"
    _run(["cp", "--sparse=always", "--reflink=auto", str(_image()), str(made)])
    return made


def root(disk: Path, given: Path) -> tuple[str, ...]:
    """For QEMU: the guest has this disk, and sees the folder `given`, read-only, at /mnt."""
    return (
        *("-drive", f"file={disk},format=raw,if=virtio,cache=unsafe"),
        *("-fsdev", f"local,id=given,path={given},security_model=none,readonly=on"),
        *("-device", "virtio-9p-pci,fsdev=given,mount_tag=given"),
    )


def init(leave: str) -> str:
    """The first script of a guest that boots from the disk until everything that is enabled is up, does its
    job, and goes down with the command `leave`."""
    return systemd.init(FROM_DISK, NEEDLESS, systemd.job(leave, f"systemd-journald.service {TARGET}"), TARGET)


def _image() -> Path:
    """Made once, of the packages that the archive has then, and kept."""
    recipe = repr((SUITE, DEBSTRAP, SIZE, systemd.MACHINE_ID))
    image = CACHE / f"{hashlib.sha256(recipe.encode()).hexdigest()[:16]}.ext4"
    if not image.exists():
        with one_at_a_time(CACHE):
            if not image.exists():  # made by whoever was here before us
                _make(image)
    return image


def _make(image: Path) -> None:
    with tempfile.TemporaryDirectory(dir=CACHE) as scratch:
        Path(scratch).chmod(0o755)  # apt fetches as a user of its own
        tree, unfinished = Path(scratch) / "tree", Path(scratch) / "image"
        _run([*APART, *DEBSTRAP, SUITE, str(tree)])
        (tree / "etc/machine-id").write_text(f"{systemd.MACHINE_ID}\n", encoding="ascii")
        (tree / "var/log/journal").mkdir(exist_ok=True)
        _run(["mke2fs", "-q", "-t", "ext4", "-d", str(tree), str(unfinished), SIZE])
        unfinished.rename(image)


def _run(command: Sequence[str]) -> None:
    environment = {**os.environ, "SOURCE_DATE_EPOCH": "0"}
    done = subprocess.run(
        command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip() or done.stdout.strip()}")
