"""A virtual machine whose guest runs one command: QEMU with an image of ours, its vCPUs threads of it."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Sequence
from pathlib import Path

from dasec.errors import ExitStatus, Refusal
from guests.built import HostCannotError, check_guest_image, guest_image
from guests.qemu import NAME

IMAGE = "small"
"""Of vm-images: boots in seconds without KVM, too, and has memcached."""

IN_GUEST = frozenset({"memcached"})
"""Drivers whose program the image has, and that are asked over the network: a guest has neither the host's
files nor its clock."""

VCPUS = ("CPU *",)
"""The threads that are vCPUs, as QEMU names them: "CPU 0/KVM", "CPU 1/TCG"."""

MEMORY_MIB = 320
"""Of which memcached may have a part (experiments/drivers/memcached.py)."""


def why_not_inside(driver: str) -> str | None:
    """Why an application cannot run in a guest, in one line; None: it can."""
    return None if driver in IN_GUEST else f"{driver}: not in the guest image ({IMAGE})"


def accelerator(device: Path = Path("/dev/kvm"), processor: Path = Path("/proc/cpuinfo")) -> str:
    """kvm where the processor has it and we may use it, else tcg. The device alone does not say so: a virtual
    machine without nesting had one, on which QEMU's guests stood still."""
    flags = set(processor.read_text(encoding="ascii", errors="replace").split())
    return "kvm" if flags & {"vmx", "svm"} and os.access(device, os.R_OK | os.W_OK) else "tcg"


def missing_image() -> str | None:
    """Why the image is neither there nor can be built, in one line; None: no reason is known."""
    found = _tried(check_guest_image)
    return found if isinstance(found, str) else None


def unbuilt_image() -> str | None:
    """The same after it was built if it was not there, which takes a minute; None: it is there."""
    found = built()
    return found if isinstance(found, str) else None


def image() -> Path:
    """The image's folder; built if it is not there yet. Refusal if it cannot be."""
    found = built()
    if isinstance(found, str):
        raise Refusal(ExitStatus.HOST, found)
    return found


@functools.cache
def built() -> Path | str:
    """Tried once: what is not there now, a network perhaps, is not looked for again in every run."""
    return _tried(guest_image)


def _tried(made: Callable[[str], Path]) -> Path | str:
    """The folder, or why there is none."""
    try:
        return made(IMAGE)
    except (HostCannotError, RuntimeError) as error:
        return f"guest image: {str(error).strip().splitlines()[-1]}"


def qemu_command(
    folder: Path, command: Sequence[str], name: str, vcpus: int, ports: Sequence[int]
) -> tuple[str, ...]:
    """QEMU, which ends with the command; with KVM where the host has it. Its console is standard input and
    output. The ports are those of the guest and of this host's 127.0.0.1. ValueError on a command that cannot
    be told through a kernel's command line."""
    forwards = "".join(f",hostfwd=tcp:127.0.0.1:{port}-:{port}" for port in ports)
    told = " ".join(map(_word, command))
    return (
        *(NAME, "-nodefaults", "-no-user-config", "-no-reboot", "-display", "none", "-serial", "stdio"),
        *("-name", f"{name},debug-threads=on", "-machine", f"q35,accel={accelerator()}", "-cpu", "max"),
        *("-smp", str(vcpus), "-m", str(MEMORY_MIB)),
        *("-kernel", str(folder / "vmlinuz"), "-initrd", str(folder / "initramfs")),
        *("-append", f"console=ttyS0 quiet panic=-1 rdinit=/init -- {told}"),
        *("-netdev", f"user,id=outside,restrict=on{forwards}"),
        *("-device", "virtio-net-pci,netdev=outside,addr=0x10,romfile="),
    )


def _word(word: str) -> str:
    """As the kernel takes it: quotation marks hold words together, and nothing can hold them."""
    if '"' in word or not word:
        raise ValueError(f"a kernel's command line has no way to say {word!r}")
    return f'"{word}"' if " " in word else word
