"""The guests: memcached, and a port at which each takes commands, under a libvirtd of their own."""

from __future__ import annotations

import json
import socket
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from dasec.lab.load_tool import figure
from guests.domains import pid_of
from guests.memcached import VCPUS, Guest, guest
from guests.waiting import wait_for

from ...places.libvirtd import own_libvirtd

MEMCACHED, CONTROL_PORT = 11211, 11212
COMMAND = f'sh -c "memcached -d -u root -t {VCPUS}; nc -ll -p {CONTROL_PORT} -e sh"'
PATIENCE_S = 120.0
"""For an answer of a guest; a run is far shorter."""


class Fleet:
    """As many guests as were asked for, all up; gone at the end of the block."""

    def __init__(self, folder: Path, image: Path) -> None:
        self._folder, self._image = folder, image
        self.guests: tuple[Guest, ...] = ()
        self.libvirtd = own_libvirtd(folder)

    def __enter__(self) -> Fleet:
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self.libvirtd.destroy()  # with its groups, which a killed QEMU would leave
        finally:
            self.libvirtd.close()

    def grow(self, number: int) -> None:
        """Starts guests until there are so many."""
        import libvirt

        connection = libvirt.open(self.libvirtd.uri)
        new = tuple(
            guest(self._folder, f"vm-{index}", COMMAND, MEMCACHED, CONTROL_PORT)
            for index in range(len(self.guests), number)
        )
        for one in new:
            one.start(connection, self._image)
        for one in new:
            one.wait_until_up()
            wait_for(partial(_answers, one))
        connection.close()
        self.guests += new

    def calibrate(self) -> float:
        """Loop iterations a microsecond of work, in a guest alone on the host."""
        told = "dasec-load service --seconds 0.05 --warmup 0"
        return figure(ask(self.guests[0], told), "iterations_per_us")

    def pid(self, one: Guest) -> int:
        """Of its QEMU."""
        return pid_of(self.libvirtd, one.name)


def _answers(one: Guest) -> bool:
    """Does it take commands yet? Until then QEMU takes the connection, and drops it."""
    try:
        return ask(one, "echo '{}'") == {}
    except (ConnectionError, IndexError):
        return False


def ask(one: Guest, script: str) -> Mapping[str, object]:
    """What a guest's shell answers last, which is a result of the load tool."""
    with socket.create_connection(("127.0.0.1", one.ports[CONTROL_PORT]), PATIENCE_S) as line:
        line.sendall(f"{script}\nexit\n".encode())
        said = b"".join(iter(lambda: line.recv(65536), b""))
    result: Mapping[str, object] = json.loads(said.splitlines()[-1])
    return result
