"""Where the processes of a workload live: as they are, in a cgroup, in a container or a guest there, or in a
container of Docker's (docker.py)."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from dasec.errors import Refusal
from dasec.lab.kit.driver import CGROUP, CONTAINER, DOCKER, GUEST, HERE, Role
from dasec.lab.kit.errors import failure
from dasec.lab.kit.place import LOOPBACK
from dasec.lab.kit.process import descendants, entered, spawn
from dasec.lab.kit.tree import Tree
from dasec.linux.cgroupfs import find_hierarchy
from dasec.linux.errors import HierarchyMissing
from guests.qemu import why_not_installed

from .bundle import missing_runtime, run_command, write_bundle
from .docker import missing_docker, unloaded_image
from .guest import image, missing_image, qemu_command, unbuilt_image

EVERYWHERE = "0.0.0.0"
"""The guest has one network, on which there is nobody but this host's side of QEMU."""


@dataclass(frozen=True, slots=True)
class Anywhere:
    """The group that we are in ourselves."""

    listens_at: ClassVar[str] = LOOPBACK

    @property
    def name(self) -> str:
        """As in `PLACES`."""
        return HERE

    def start(
        self, command: Sequence[str], log: Path, role: Role = Role.WORKLOAD, serves: Sequence[int] = ()
    ) -> subprocess.Popen[bytes]:
        return spawn(command, log)

    def pids(self, child: subprocess.Popen[bytes]) -> tuple[int, ...]:
        return tuple(descendants(child.pid))

    def take_out(self, pid: int) -> None:
        """Clients are here, too."""


def _cannot_take_out(name: str) -> Refusal:
    return failure(f"{name}: a client inside the workload cannot be taken out: give it one outside")


@dataclass(frozen=True, slots=True)
class InContainer:
    """A container of crun in such a cgroup: namespaces of its own for processes, mounts, IPC and names, the
    host's root read-only, and the host's network, so that clients outside reach it without a bridge."""

    listens_at: ClassVar[str] = LOOPBACK
    tree: Tree
    workload: str
    client: str
    bundles: Path
    """Of this place alone: a folder a container."""
    writable: tuple[Path, ...]
    """What the workload may write: the orders' folders."""

    @property
    def name(self) -> str:
        """As in `PLACES`."""
        return CONTAINER

    def start(
        self, command: Sequence[str], log: Path, role: Role = Role.WORKLOAD, serves: Sequence[int] = ()
    ) -> subprocess.Popen[bytes]:
        if role is Role.CLIENT:
            return spawn(entered(self.tree, self.client, command), log)
        self.bundles.mkdir(parents=True, exist_ok=True)
        bundle = self.bundles / str(len(list(self.bundles.iterdir())))
        write_bundle(bundle, command, self.writable)
        contained = run_command(bundle, f"dasec-{os.getpid()}-{self.bundles.name}-{bundle.name}")
        return spawn(entered(self.tree, self.workload, contained), log)

    def pids(self, child: subprocess.Popen[bytes]) -> tuple[int, ...]:
        """Without crun, which only waits."""
        return tuple(pid for pid in descendants(child.pid) if pid != child.pid)

    def take_out(self, pid: int) -> None:
        raise _cannot_take_out(self.name)


@dataclass(frozen=True, slots=True)
class InGuest:
    """A virtual machine in such a cgroup, as libvirt puts one there; clients outside reach its ports through
    QEMU's user network. The daemon sees QEMU's threads, and nothing of what is inside."""

    listens_at: ClassVar[str] = EVERYWHERE
    tree: Tree
    workload: str
    client: str
    vcpus: int

    @property
    def name(self) -> str:
        """As in `PLACES`."""
        return GUEST

    def start(
        self, command: Sequence[str], log: Path, role: Role = Role.WORKLOAD, serves: Sequence[int] = ()
    ) -> subprocess.Popen[bytes]:
        if role is Role.CLIENT:
            return spawn(entered(self.tree, self.client, command), log)
        inside = (Path(command[0]).name, *command[1:])  # the guest has its own, where it may be elsewhere
        booted = qemu_command(image(), inside, self.workload.rpartition("/")[2], self.vcpus, serves)
        return spawn(entered(self.tree, self.workload, booted), log)

    def pids(self, child: subprocess.Popen[bytes]) -> tuple[int, ...]:
        return tuple(descendants(child.pid))

    def take_out(self, pid: int) -> None:
        raise _cannot_take_out(self.name)


def _missing_group() -> str | None:
    try:
        tree = Tree.of(find_hierarchy())
    except HierarchyMissing as error:
        return f"cgroup: {error}: mount one"
    if os.geteuid() != 0 or not os.access(tree.top.parent, os.W_OK):
        return f"{tree.top.parent}: cannot be written: run as root"
    return None


def _missing_container() -> str | None:
    return _missing_group() or missing_runtime()


def _missing_docker() -> str | None:
    return _missing_group() or missing_docker()


def _missing_guest() -> str | None:
    return _missing_group() or why_not_installed() or missing_image()


def missing_place(place: str) -> str | None:
    """As `PLACES` has it, where nothing is made."""
    return PLACES[place]()


def unready_place(place: str) -> str | None:
    """The same after making what processes need there: a guest's image takes a minute."""
    making = MAKING.get(place)
    return PLACES[place]() or (making() if making else None)


PLACES: Mapping[str, Callable[[], str | None]] = {
    HERE: lambda: None,
    CGROUP: _missing_group,
    CONTAINER: _missing_container,
    DOCKER: _missing_docker,
    GUEST: _missing_guest,
}
"""All places by name, each with why it cannot be used on this host, in one line; None: it can."""

MAKING: Mapping[str, Callable[[], str | None]] = {DOCKER: unloaded_image, GUEST: unbuilt_image}
"""What makes images, and why there is none."""
