"""The guest as a domain of a libvirtd: libvirt makes its groups, and the daemon's own discovery finds it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape

from guests.bare.built import bare_guest
from guests.bare.machine import Bare, NotUpError, await_up
from guests.bare.words import CARD, Accelerator, forwarding, free_ports, here, online
from guests.domains import pid_of
from guests.libvirtd import Libvirtd
from guests.waiting import gone

if TYPE_CHECKING:
    from libvirt import virConnect

PREFIX = f"dasec-{os.getpid()}-"
"""Groups are named after domains, and those of all libvirtds of a machine lie side by side."""

START_S = 250.0
"""Through a BIOS, beside others."""

CPU = {
    Accelerator.KVM: (
        "<cpu mode='host-passthrough'><feature policy='disable' name='arch-capabilities'/></cpu>"
    ),
    Accelerator.TCG: "<cpu mode='maximum'/>",
}
TYPE = {Accelerator.KVM: "kvm", Accelerator.TCG: "qemu"}

DOMAIN = """
<domain type='{type}' xmlns:qemu='http://libvirt.org/schemas/domain/qemu/1.0'>
  <name>{name}</name>
  <memory unit='MiB'>64</memory>
  <vcpu>{vcpus}</vcpu>
  <os><type arch='x86_64' machine='pc'>hvm</type><kernel>{kernel}</kernel><cmdline>{options}</cmdline></os>
  <features><acpi/></features>
  {cpu}
  <devices>
    <emulator>/usr/bin/qemu-system-x86_64</emulator>
    <controller type='usb' model='none'/><memballoon model='none'/>
  </devices>
  <qemu:commandline>{arguments}</qemu:commandline>
</domain>
"""
CARD_PLACE = "addr=0x10"
"""Far from where libvirt puts what it knows of."""


@contextmanager
def domain(
    libvirtd: Libvirtd, connection: virConnect, accelerator: Accelerator, name: str, vcpus: int, options: str
) -> Iterator[Bare]:
    """A domain of that name behind PREFIX, up, until the end of the block. NotUpError where it does not come
    up, libvirtError where libvirt does not take it."""
    import libvirt

    console, ports = Path(f"/run/libvirt/{name}.console"), free_ports()
    arguments = (
        *("-chardev", f"file,id=console,path={console}"),
        *("-device", "isa-debugcon,chardev=console,iobase=0xe9"),
        *("-netdev", forwarding(ports)),
        *("-device", f"virtio-net-pci,romfile=,{CARD_PLACE},{CARD}"),
    )
    definition = DOMAIN.format(
        type=TYPE[accelerator],
        name=PREFIX + name,
        vcpus=vcpus,
        kernel=bare_guest(),
        options=escape(options),
        cpu=CPU[accelerator],
        arguments="".join(f"<qemu:arg value='{escape(one)}'/>" for one in arguments),
    )
    made = connection.createXML(definition)
    seen = libvirtd.root / console.relative_to("/")
    try:
        pid = pid_of(libvirtd, PREFIX + name)
        await_up(seen, vcpus, lambda: gone(pid), START_S)
        if gone(pid):
            raise NotUpError("QEMU ended")
        yield Bare(pid, *here(ports), online(seen))
    finally:
        with suppress(libvirt.libvirtError):  # it has ended by itself
            made.destroy()
