"""Which kernels the testbed has."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from dasec.errors import ExitStatus, Refusal
from guests.built import HostCannotError, patched_image, sched_ext_image
from guests.qemu import QemuMissingError
from guests.throw_away import GuestKernel, debian_kernel, newer_kernel

from .cpus import Cpus
from .machine import Machine

TESTBED = "testbed"

PATCHED = "6.1"
SCHED_EXT = "sched_ext"
NEWER = "newer"
KERNELS = {
    PATCHED: "our patched 6.1 (CFS)",
    "6.12": "Debian's 6.12 (EEVDF)",
    SCHED_EXT: "an unpatched 6.12 with sched_ext",
    NEWER: "the newest of Debian 13's backports, with sched_ext",
}
WITH_SCHED_EXT = (SCHED_EXT, NEWER)
WITHOUT_MODULES = (PATCHED, SCHED_EXT)
_DEBIAN = "linux-image-6.12-amd64"

PATCHED_CPUS = 64
"""CONFIG_NR_CPUS of kvm-patches/v6.1/config.guest."""


FIRST_SECTOR, VERSION_AT = 0x200, 0x20E
"""Of the boot protocol."""


def kernel_for(kernel: str, cpus: Cpus) -> Path:
    """Built, or got, or from the cache. Refuses more CPUs than it has."""
    if kernel == PATCHED and cpus.total > PATCHED_CPUS:
        most = f"kernel {kernel} has at most {PATCHED_CPUS - len(cpus.apart)}: take --kernel 6.12"
        raise Refusal(ExitStatus.USAGE, f"{TESTBED}: --cpus: {cpus.services}: {most}")
    ours = {PATCHED: patched_image, SCHED_EXT: sched_ext_image}.get(kernel)
    return ours() if ours else _debian(kernel, ()).image


def modules_for(kernel: str, names: Sequence[str]) -> tuple[Path, ...]:
    """The files of these modules of it, and of those that they need, in loading order."""
    return () if kernel in WITHOUT_MODULES else _debian(kernel, names).modules


def _debian(kernel: str, modules: Sequence[str]) -> GuestKernel:
    return newer_kernel(modules) if kernel == NEWER else debian_kernel(_DEBIAN, modules)


def configuration_of(image: Path) -> Path | None:
    """The file with its options, which every build of ours and every package of Debian has beside it."""
    beside = (image.with_name("config"), image.with_name(f"config-{release_of(image)}"))
    return next((file for file in beside if file.is_file()), None)


def release_of(image: Path) -> str:
    """What `uname -r` says under it. The header of an image for x86 says where that stands."""
    content = image.read_bytes()
    begin = FIRST_SECTOR + int.from_bytes(content[VERSION_AT : VERSION_AT + 2], "little")
    return content[begin:].split(b" ", 1)[0].decode("ascii")


def or_refuse(make: Callable[[], Machine]) -> Machine:
    """The machine. Refuses where the host has no way to get it."""
    try:
        return make()
    except (HostCannotError, QemuMissingError) as error:
        raise Refusal(ExitStatus.HOST, f"{TESTBED}: {error}") from None
