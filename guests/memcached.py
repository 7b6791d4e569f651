"""Domains of 2 vCPUs that boot the small guest image under a test's own libvirtd."""

from __future__ import annotations

import contextlib
import os
import re
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape

from guests.built import IMAGES
from guests.waiting import wait_for

if TYPE_CHECKING:
    from libvirt import virConnect

TEMPLATE = Path(IMAGES[-1]).with_name("domain.xml")
MEMORY_MIB, VCPUS = 192, 2

PREFIX = f"dasec-{os.getpid()}-"
"""Groups are named after domains, and those of all libvirtds of a machine lie side by side."""


@dataclass(frozen=True, slots=True)
class Guest:
    """A domain, what it runs, and where it can be heard."""

    name: str
    command: str
    console: Path
    ports: Mapping[int, int]
    """Of the guest, and where this host has them."""

    def definition(self, image: Path) -> str:
        """As libvirt takes it."""
        return Template(TEMPLATE.read_text(encoding="utf-8")).substitute(
            type="qemu",
            name=self.name,
            memory_mib=MEMORY_MIB,
            vcpus=VCPUS,
            image=image,
            command=escape(self.command),
            console=self.console,
            forwards="".join(f",hostfwd=tcp:127.0.0.1:{ours}-:{its}" for its, ours in self.ports.items()),
        )

    def start(self, connection: virConnect, image: Path) -> None:
        """As far as QEMU; the guest boots meanwhile."""
        connection.createXML(self.definition(image))

    def wait_until_up(self) -> None:
        """Its command has begun."""
        wait_for(lambda: re.search(r"^GUEST-UP:", self.said, re.MULTILINE) is not None)

    @property
    def said(self) -> str:
        """Its console so far."""
        return self.console.read_text(errors="replace") if self.console.exists() else ""


def guest(folder: Path, name: str, command: str, *serves: int) -> Guest:
    """A guest of that name; the ports that it serves are at some that are free now."""
    with contextlib.ExitStack() as stack:
        free = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in serves]
        ports = {its: ours.getsockname()[1] for its, ours in zip(serves, free, strict=True)}
    return Guest(f"{PREFIX}{name}", command, folder / f"{name}.console", ports)
