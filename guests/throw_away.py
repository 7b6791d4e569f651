"""A throw-away QEMU guest that runs one command on a Debian or patched kernel with a chosen cgroup layout.

The guest's root is this machine's own root directory, read-only over 9p, below a tmpfs
overlay: the checkout, its virtual environment and every tool are there without an image
to build, and nothing that the guest does can reach the host. TCG only, so it works
wherever QEMU does; do not measure time in it.
"""

from __future__ import annotations

import lzma
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from guests.boot import EXIT_MARK, GuestRun, one_at_a_time, pack_initramfs, run_until_end
from guests.qemu import backports, private_apt

CACHE = Path("/var/cache/dasec-guest")
MODULES = ("virtio_pci", "9pnet_virtio", "9p", "overlay")
NEWER_DEBIAN = "trixie"
NEWER = f"{NEWER_DEBIAN}-backports-kernel"
"""Where it lies."""

MEMORY_MIB, MEMORY_MIB_A_CPU = 1536, 32
"""With two CPUs, and for each one more."""

BOOT = "console=ttyS0 quiet panic=-1 no_timer_check rdinit=/init"
"""Where QEMU gets no time, a kernel that checks its timer finds none that works, and stops."""

QEMU = "qemu-system-x86_64"
TOOLS = (QEMU, "busybox", "cpio", "depmod", "modprobe", "apt-get", "dpkg")

ROOT = """#!/bin/busybox sh
busybox mkdir -p /proc /sys /dev /ro /rw /root
busybox mount -t proc proc /proc
busybox mount -t sysfs sys /sys
busybox mount -t devtmpfs dev /dev
for module in /modules/*; do [ ! -e $module ] || busybox insmod $module; done
busybox mount -t 9p -o trans=virtio,version=9p2000.L,cache=loose,msize=262144,ro host /ro
busybox mount -t tmpfs tmpfs /rw
busybox mkdir -p /rw/up /rw/work
busybox mount -t overlay -o lowerdir=/ro,upperdir=/rw/up,workdir=/rw/work overlay /root
for d in proc sys dev; do busybox mount -o move /$d /root/$d; done
busybox mount -t tmpfs tmpfs /root/run
busybox mkdir /root/run/scratch
busybox cp /layout.sh /job.sh /root/run/
"""
"""Makes the root, from which the guest goes on in one of two ways."""

INIT = f"""{ROOT}
busybox mkdir -p /root/dev/shm /root/dev/pts
busybox mount -t tmpfs tmpfs /root/dev/shm
busybox mount -t devpts devpts /root/dev/pts
busybox ip link set lo up
cd /root
busybox mount -o move . / # the root of whoever enters this mount namespace, as `runc exec` does
busybox chroot . /bin/sh /run/layout.sh
export TMPDIR=/run/scratch
busybox chroot . /bin/sh -c "exec /bin/bash /run/job.sh </dev/null"
busybox echo "{EXIT_MARK}$?"
busybox reboot -f
"""


class CgroupLayout(StrEnum):
    """Where the cpu controller lives in the guest."""

    V1 = "v1"
    HYBRID = "hybrid"
    V2 = "v2"


LAYOUT_SCRIPTS = {
    CgroupLayout.V1: "mount -t tmpfs tmpfs /sys/fs/cgroup\n"
    "for c in cpu cpuacct; do\n"
    "mkdir /sys/fs/cgroup/$c; mount -t cgroup -o $c $c /sys/fs/cgroup/$c\n"
    "done\n",
    CgroupLayout.HYBRID: "mount -t tmpfs tmpfs /sys/fs/cgroup\n"
    "mkdir /sys/fs/cgroup/cpu,cpuacct /sys/fs/cgroup/unified\n"
    "mount -t cgroup -o cpu,cpuacct cpu /sys/fs/cgroup/cpu,cpuacct\n"
    "mount -t cgroup2 cgroup2 /sys/fs/cgroup/unified\n",
    CgroupLayout.V2: "mount -t cgroup2 cgroup2 /sys/fs/cgroup\n",
}


TURNS = "tcg,thread=single"
"""QEMU's CPUs take turns. With a thread for each, a CPU may still execute an int3 that another one has taken
away again: "Oops: int3" in three of four runs on cgroup v1 that attached BPF programs to interrupts (QEMU
7.2), and twice in some dozens of runs Linux 6.1 computed for seven minutes and said nothing."""

MACHINE = (QEMU, "-accel", TURNS)
"""Which QEMU, and how it computes."""


MACHINE_ROOT = (
    *("-fsdev", "local,id=host,path=/,security_model=none,readonly=on,multidevs=remap"),
    *("-device", "virtio-9p-pci,fsdev=host,mount_tag=host"),
)
"""What `ROOT` makes the root of."""


@dataclass(frozen=True, slots=True)
class GuestKernel:
    """A kernel image and the modules, in loading order, that reach the root; none if they are built in."""

    release: str
    image: Path
    modules: tuple[Path, ...]


def missing_tools() -> tuple[str, ...]:
    """The programs that a guest needs and this machine lacks."""
    return tuple(tool for tool in TOOLS if shutil.which(tool) is None)


def debian_kernel(meta_package: str, modules: Sequence[str] = MODULES) -> GuestKernel:
    """The kernel that Debian's meta package names, downloaded once and unpacked without installing it."""
    package = _concrete_package(meta_package)
    release = package.removeprefix("linux-image-")
    tree = CACHE / f"{package}-{_content(package)[:16]}"
    if not (tree / "complete").exists():
        with one_at_a_time(CACHE):
            _unpack(package, release, tree)
    return GuestKernel(
        release, tree / "boot" / f"vmlinuz-{release}", tuple(modules_with_needs(tree, release, modules))
    )


def newer_kernel(modules: Sequence[str] = MODULES) -> GuestKernel:
    """The newest kernel of Debian 13's backports, which has sched_ext; downloaded once. Raises
    QemuMissingError where apt knows no archive for it."""
    tree = CACHE / NEWER
    if not (tree / "complete").exists():
        with one_at_a_time(CACHE):
            if not (tree / "complete").exists():
                _unpack_newer(tree)
    release = (tree / "complete").read_text().strip()
    image = tree / "usr/lib/modules" / release / "vmlinuz"
    return GuestKernel(release, image, tuple(modules_with_needs(tree, release, modules)))


def run_in_guest(
    kernel: GuestKernel,
    layout: CgroupLayout,
    command: str,
    scratch: Path,
    timeout_s: int,
    init: str = INIT,
    machine: Sequence[str] = MACHINE,
    root: Sequence[str] = MACHINE_ROOT,
    cpus: int = 2,
) -> GuestRun:
    """Boot, run `command` with bash as root, and return what it said. `scratch` holds the initramfs;
    `root` is what `init` finds its root on, in QEMU's words."""
    initramfs = _initramfs(kernel, layout, command, scratch, init)
    arguments = [
        *(*machine, "-nodefaults", "-no-reboot", "-display", "none", "-serial", "stdio"),
        *("-cpu", "max", "-smp", str(cpus), "-m", str(MEMORY_MIB + MEMORY_MIB_A_CPU * (cpus - 2))),
        *("-kernel", str(kernel.image), "-initrd", str(initramfs)),
        *root,
        *("-append", BOOT),
    ]
    return run_until_end(arguments, timeout_s)


def _unpack(package: str, release: str, tree: Path) -> None:
    if (tree / "complete").exists():  # by whoever was here before us
        return
    shutil.rmtree(tree, ignore_errors=True)
    tree.mkdir(parents=True)
    _run(["apt-get", "download", package], cwd=tree)
    (archive,) = tree.glob("*.deb")
    _run(["dpkg", "-x", str(archive), str(tree)])
    archive.unlink()
    _run(["depmod", "-b", str(tree), release])
    (tree / "complete").touch()


def _unpack_newer(tree: Path) -> None:
    """Image, modules and their lists are packages of their own there."""
    shutil.rmtree(tree, ignore_errors=True)
    tree.mkdir(parents=True)
    with tempfile.TemporaryDirectory(dir=CACHE, prefix="unpacking-") as scratch:
        downloads = Path(scratch) / "downloads"
        downloads.mkdir()
        apt = private_apt(Path(scratch) / "apt", backports(NEWER_DEBIAN))
        cache = ["apt-cache", *apt[1:]]
        _run([*apt, "update"])
        image = next(_depends(_run([*cache, "depends", "--important", "linux-image-amd64"]), "linux-image-"))
        release = image.removeprefix("linux-image-")
        parts = [f"linux-{part}-{release}" for part in ("base", "binary", "modules")]
        _run([*apt, "download", *parts], cwd=downloads)
        for archive in downloads.glob("*.deb"):
            _run(["dpkg", "-x", str(archive), str(tree)])
    (tree / "lib").mkdir()
    (tree / "lib/modules").symlink_to("../usr/lib/modules")
    _run(["depmod", "-b", str(tree), release])
    (tree / "complete").write_text(release)


def _depends(listing: str, beginning: str) -> Iterator[str]:
    return (found.group(1) for found in re.finditer(rf"Depends: ({beginning}[0-9]\S+)", listing))


def _concrete_package(meta_package: str) -> str:
    depends = _run(["apt-cache", "depends", "--important", meta_package])
    return next(match.group(1) for match in re.finditer(r"Depends: (linux-image-\S+)", depends))


def _content(package: str) -> str:
    """The hash of the package that apt would fetch, so that clones share it and a rebuilt one is another."""
    said = _run(["apt-cache", "show", "--no-all-versions", package])
    return next(line.removeprefix("SHA256: ") for line in said.splitlines() if line.startswith("SHA256: "))


def modules_with_needs(tree: Path, release: str, names: Iterable[str]) -> Iterator[Path]:
    """The files of these modules and of those that they need, in loading order."""
    seen: set[str] = set()
    for name in names:
        listing = _run(["modprobe", "-d", str(tree), "-S", release, "--show-depends", name])
        for line in listing.splitlines():
            kind, _, path = line.strip().partition(" ")
            if kind == "insmod" and path not in seen:
                seen.add(path)
                yield Path(path.strip())


def copy_modules(modules: Iterable[Path], folder: Path) -> None:
    """Plain, under names that sort in loading order."""
    folder.mkdir(parents=True)
    for order, module in enumerate(modules):
        packed = module.read_bytes()
        plain = lzma.decompress(packed) if module.suffix == ".xz" else packed
        (folder / f"{order:02d}-{module.name.removesuffix('.xz')}").write_bytes(plain)


def _initramfs(kernel: GuestKernel, layout: CgroupLayout, command: str, scratch: Path, init: str) -> Path:
    tree = scratch / "initramfs"
    copy_modules(kernel.modules, tree / "modules")
    (tree / "layout.sh").write_text(LAYOUT_SCRIPTS[layout])
    (tree / "job.sh").write_text(command + "\n")
    return pack_initramfs(tree, init)


def _run(arguments: list[str], cwd: Path | None = None) -> str:
    done = subprocess.run(arguments, cwd=cwd, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(arguments)}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout
