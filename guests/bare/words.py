"""What QEMU is told to run the guest, and where the guest is reached then. Counted guests have it, too."""

from __future__ import annotations

import random
import re
import socket
from contextlib import ExitStack, suppress
from enum import StrEnum
from itertools import islice
from pathlib import Path

UP = re.compile(r"^bare: (\d+) of (\d+) vCPUs", re.MULTILINE)
PORT, MEMCACHED_PORT = 7, 11211
"""Of the guest, which takes requests on all but memcached's."""

ADDRESS, LOOPBACK = "10.0.2.15", "127.0.0.1"
EPHEMERAL, ROOM = Path("/proc/sys/net/ipv4/ip_local_port_range"), 8192
"""Of so many ports below them a guest has two."""

UNPRIVILEGED = 1024

COMMON = (
    *("-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", "-m", "64"),
    *("-device", "isa-debugcon,chardev=console,iobase=0xe9", "-device", "isa-debug-exit"),
)
CARD = "netdev=net,csum=off,guest_csum=off,mrg_rxbuf=off"
MICROVM = "microvm,acpi=off,pit=off,pic=off,rtc=off,isa-serial=off,auto-kernel-cmdline=off,kernel-irqchip=on"


class Machine(StrEnum):
    """Where the guest's card is."""

    MICROVM = "microvm"
    """On the memory bus, and no firmware: up in half a second."""

    PC = "pc"
    """On PCI, behind a BIOS: what libvirt can run."""

    Q35 = "q35"

    @property
    def options(self) -> tuple[str, ...]:
        """Of QEMU, with the card."""
        if self is Machine.MICROVM:
            mmio = ("-global", "virtio-mmio.force-legacy=false", "-device", f"virtio-net-device,{CARD}")
            return ("-machine", MICROVM, *mmio)
        return ("-machine", f"{self},kernel-irqchip=on", "-device", f"virtio-net-pci,romfile=,{CARD}")


class Accelerator(StrEnum):
    """What runs the guest's instructions."""

    KVM = "kvm"
    TCG = "tcg"

    @property
    def cpu(self) -> str:
        """The model that it can be asked for: QEMU ends where KVM refuses to write a register."""
        return {Accelerator.KVM: "host,-arch-capabilities", Accelerator.TCG: "max"}[self]


def qemu_words(
    accelerator: Accelerator,
    vcpus: int,
    options: str,
    console: Path,
    network: str,
    machine: Machine = Machine.MICROVM,
) -> list[str]:
    """What QEMU is told, but for the guest's file."""
    return [
        *("-name", "bare,debug-threads=on", *COMMON),
        *("-accel", accelerator, "-cpu", accelerator.cpu, "-smp", str(vcpus)),
        *("-append", options),
        *("-chardev", f"file,id=console,path={console}"),
        *("-netdev", network),
        *machine.options,
    ]


def said_up(console: Path) -> bool:
    """Has the guest said that its vCPUs are there?"""
    return console.exists() and UP.search(console.read_text(errors="replace")) is not None


def online(console: Path) -> int:
    """vCPUs that came up, as it said there."""
    found = UP.search(console.read_text(errors="replace"))
    assert found is not None
    return int(found.group(1))


Ports = tuple[int, int]
"""Of this host, for requests and for memcached."""


def free_ports() -> Ports:
    """UDP ports of the loopback that nobody has at the moment, and that no socket gets which asks for none:
    QEMU takes them later. Where there are no others, any."""
    lowest = int(EPHEMERAL.read_text(encoding="ascii").split()[0])
    below = range(max(UNPRIVILEGED, lowest - ROOM), lowest)
    wanted = below if len(below) > ROOM // 2 else range(UNPRIVILEGED, 1 << 16)
    with ExitStack() as stack:
        one, other = islice((port for port in random.sample(wanted, len(wanted)) if _is_free(port, stack)), 2)
    return one, other


def _is_free(port: int, stack: ExitStack) -> bool:
    """It was; now it is bound as long as the stack is not closed."""
    probe = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    with suppress(OSError):
        probe.bind((LOOPBACK, port))
        stack.enter_context(probe)
        return True
    probe.close()
    return False


def here(ports: Ports) -> tuple[tuple[str, int], tuple[str, int]]:
    """The guest's addresses on this host."""
    requests, memcached = ports
    return (LOOPBACK, requests), (LOOPBACK, memcached)


def forwarding(ports: Ports) -> str:
    """QEMU's, by which the guest is reached there."""
    both = zip(ports, (PORT, MEMCACHED_PORT), strict=True)
    return "user,id=net" + "".join(f",hostfwd=udp:{LOOPBACK}:{ours}-{ADDRESS}:{its}" for ours, its in both)
