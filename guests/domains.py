"""Domains on a real libvirtd whose guest does nothing but to give CPUs back, and what is true of them.

What libvirt and the kernel hold is read here by other ways than the daemon's: process ids from QEMU's own pid
files, threads by their names, groups by their directories.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from dasec.linux import affinity, cgroupfs, procfs, schedattr
from guests.libvirtd import Libvirtd

if TYPE_CHECKING:
    from libvirt import virConnect

VCPU = re.compile(r"CPU (\d+)/")
MAX_VCPUS = 4
ACTIVE = 1
"""VIR_CONNECT_LIST_DOMAINS_ACTIVE in libvirt-domain.h."""

DOMAIN = """
<domain type='qemu'>
  <name>{name}</name>
  <memory unit='MiB'>32</memory>
  <vcpu placement='static' current='2'>{maximum}</vcpu>
  <iothreads>1</iothreads>
  <cputune><vcpupin vcpu='1' cpuset='1'/></cputune>
  <os><type arch='x86_64' machine='q35'>hvm</type><boot dev='hd'/></os>
  <features><acpi/></features>
  <devices>
    <emulator>/usr/bin/qemu-system-x86_64</emulator>
    <disk type='file' device='disk'>
      <driver name='qemu' type='raw'/><source file='{disk}'/><target dev='sda' bus='sata'/><shareable/>
    </disk>
    <controller type='usb' model='none'/><memballoon model='none'/>
  </devices>
</domain>
"""


class Numbers(NamedTuple):
    """A vCPU: its number in the domain, and its thread."""

    vcpu: int
    pid: int
    tid: int


def boot_disk(folder: Path) -> Path:
    """A disk whose boot sector is ejector.S."""
    disk = folder / "ejector.img"
    source = Path(__file__).with_name("ejector.S")
    link = "-Wl,--build-id=none,-Ttext=0x7c00,--oformat=binary"
    subprocess.run(["gcc", "-nostdlib", "-static", link, "-o", disk, source], check=True)
    disk.chmod(0o644)
    with disk.open("ab") as file:
        file.truncate(1 << 20)
    return disk


def running(connection: virConnect) -> list[str]:
    """The names of the domains that libvirt says run."""
    return sorted(domain.name() for domain in connection.listAllDomains(ACTIVE))


def pid_of(libvirtd: Libvirtd, name: str) -> int:
    """The QEMU of a domain."""
    return int((libvirtd.directory / f"{name}.pid").read_text())


def vcpus_of(libvirtd: Libvirtd, name: str) -> list[Numbers]:
    """A running domain's vCPUs, in order."""
    pid = pid_of(libvirtd, name)
    named = ((VCPU.match(procfs.read_stat(pid, tid).comm), tid) for tid in procfs.thread_ids(pid))
    return sorted(Numbers(int(match.group(1)), pid, tid) for match, tid in named if match)


def others_of(libvirtd: Libvirtd, name: str) -> Iterator[int]:
    """The main thread and the I/O threads; what QEMU's pools start comes and goes."""
    pid = pid_of(libvirtd, name)
    for tid in procfs.thread_ids(pid):
        if tid == pid or procfs.read_stat(pid, tid).comm.startswith("IO iothread"):
            yield tid


def groups(prefix: str) -> dict[str, list[str]]:
    """The cpu groups of each domain of such a name that has any, by its name: others may have some."""
    hierarchy = cgroupfs.find_hierarchy()
    return {
        match.group(1): [child.rpartition("/")[2] for child in hierarchy.children(group)]
        for group in hierarchy.children("/machine")
        if (match := re.fullmatch(rf"qemu-\d+-({prefix}.+)\.libvirt-qemu", group.rpartition("/")[2]))
    }


def has_libvirts_weight(numbers: Numbers) -> bool:
    """Has the vCPU's group the weight that libvirt leaves it with, the kernel's?"""
    hierarchy = cgroupfs.find_hierarchy()
    file = hierarchy.weight_file(hierarchy.group_of(numbers.pid, numbers.tid))
    return cgroupfs.read_weight(file) == {1: 1024, 2: 100}[hierarchy.version]


def is_untouched(tid: int, mask: frozenset[int]) -> bool:
    """Has the thread the slice that everybody has, and this mask?"""
    return schedattr.get(tid).slice_ns == schedattr.get(1).slice_ns and set(affinity.get(tid)) == mask
