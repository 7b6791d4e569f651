"""QEMU around the guest: under KVM where that serves it, else under TCG."""

from __future__ import annotations

import re
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path

from dasec.linux import procfs
from guests.bare.built import bare_guest
from guests.waiting import wait_for

VCPU = re.compile(r"CPU (\d+)/")
UP = re.compile(r"^bare: (\d+) of (\d+) vCPUs", re.MULTILINE)
PORT, MEMCACHED_PORT = 7, 11211
"""Of the guest, which takes requests on all but memcached's."""

ADDRESS, LOOPBACK = "10.0.2.15", "127.0.0.1"
TRIAL_VCPUS, TRIAL_PATIENCE_S = 2, 60.0
"""It takes half a second, or for ever."""

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


class BareDiedError(Exception):
    """QEMU ended before the guest was up; what it said."""


@dataclass(frozen=True, slots=True)
class Bare:
    """A guest that is up."""

    pid: int
    address: tuple[str, int]
    """Where it answers on this host."""

    memcached: tuple[str, int]
    """And where it is a memcached."""

    online: int
    """vCPUs that came up, by its own count."""

    def vcpu_threads(self) -> dict[int, int]:
        """The host's threads, by number of the vCPU."""
        named = (
            (VCPU.match(procfs.read_stat(self.pid, tid).comm), tid) for tid in procfs.thread_ids(self.pid)
        )
        return {int(match.group(1)): tid for match, tid in named if match}


@contextmanager
def running(
    accelerator: Accelerator,
    vcpus: int,
    options: str = "",
    patience_s: float = 250.0,
    machine: Machine = Machine.MICROVM,
    wire: str | None = None,
) -> Iterator[Bare]:
    """A guest with these options (vm-images/bare/README.md) until the end of the block; `wire` is QEMU's
    network `net` instead of one that forwards the guest's ports."""
    with tempfile.TemporaryDirectory(prefix="dasec-bare-") as folder:
        console, said, ports = Path(folder) / "console", Path(folder) / "said", free_ports()
        network = wire or forwarding(ports)
        command = [*_command(accelerator, vcpus, options, console, network), *machine.options]
        with said.open("wb") as sink:
            qemu = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=sink, stderr=sink)
        try:
            wait_for(lambda: said_up(console) or qemu.poll() is not None, patience_s)
            if qemu.poll() is not None:
                raise BareDiedError(said.read_text(errors="replace").strip() or "QEMU said nothing")
            yield Bare(qemu.pid, *here(ports), online(console))
        finally:
            qemu.kill()
            qemu.wait()


@cache
def why_not_kvm() -> str | None:
    """Found by trying: None if KVM serves this guest here, else why TCG has to, in one line."""
    try:
        with running(Accelerator.KVM, TRIAL_VCPUS, patience_s=TRIAL_PATIENCE_S):
            return None
    except BareDiedError as died:
        return f"KVM does not serve here, TCG does: {str(died).splitlines()[-1]}"
    except AssertionError:
        return f"KVM does not serve here, TCG does: no guest within {TRIAL_PATIENCE_S:.0f} s"


def best_accelerator() -> Accelerator:
    """KVM where it serves."""
    return Accelerator.KVM if why_not_kvm() is None else Accelerator.TCG


def _command(accelerator: Accelerator, vcpus: int, options: str, console: Path, network: str) -> list[str]:
    return [
        *("qemu-system-x86_64", "-name", "bare,debug-threads=on", *COMMON),
        *("-accel", accelerator, "-cpu", accelerator.cpu, "-smp", str(vcpus)),
        *("-kernel", str(bare_guest()), "-append", options),
        *("-chardev", f"file,id=console,path={console}"),
        *("-netdev", network),
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
    """UDP ports of the loopback that nobody has at the moment."""
    with ExitStack() as stack:
        one, other = (stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) for _ in range(2))
        for probe in (one, other):
            probe.bind((LOOPBACK, 0))
        return one.getsockname()[1], other.getsockname()[1]


def here(ports: Ports) -> tuple[tuple[str, int], tuple[str, int]]:
    """The guest's addresses on this host."""
    requests, memcached = ports
    return (LOOPBACK, requests), (LOOPBACK, memcached)


def forwarding(ports: Ports) -> str:
    """QEMU's, by which the guest is reached there."""
    both = zip(ports, (PORT, MEMCACHED_PORT), strict=True)
    return "user,id=net" + "".join(f",hostfwd=udp:{LOOPBACK}:{ours}-{ADDRESS}:{its}" for ours, its in both)
