"""Where the processes of a workload live: as they are, in a cgroup, in a container or a guest there."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from dasec.lab.kit.process import ENTER
from dasec.lab.kit.tree import Tree
from dasec.linux.cgroupfs import find_hierarchy
from dasec.linux.errors import HierarchyMissing

from ..drivers.driver import CGROUP, CONTAINER, GUEST, HERE, Role
from .bundle import missing_runtime, run_command, write_bundle
from .guest import image, missing_image, missing_qemu, qemu_command, unbuilt_image

LOOPBACK = "127.0.0.1"
EVERYWHERE = "0.0.0.0"
"""The guest has one network, on which there is nobody but this host's side of QEMU."""


def descendants(pid: int, proc: Path = Path("/proc")) -> Iterator[int]:
    """The process and all below it, as far as they live."""
    yield pid
    for task in sorted((proc / str(pid) / "task").glob("[0-9]*")):
        with contextlib.suppress(OSError):
            for child in (task / "children").read_text(encoding="ascii").split():
                yield from descendants(int(child), proc)


def _spawn(command: Sequence[str], log: Path) -> subprocess.Popen[bytes]:
    """It gets no Ctrl-C of ours: we end it."""
    with log.open("ab") as output:
        return subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
        )


def _entered(tree: Tree, group: str, command: Sequence[str]) -> tuple[str, ...]:
    return ("/bin/sh", "-c", ENTER, str(tree.entry(group)), *command)


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
        return _spawn(command, log)

    def pids(self, child: subprocess.Popen[bytes]) -> tuple[int, ...]:
        return tuple(descendants(child.pid))


@dataclass(frozen=True, slots=True)
class InGroup:
    """A cgroup of a tree whose groups exist, v1 or v2; clients in another one."""

    listens_at: ClassVar[str] = LOOPBACK
    tree: Tree
    workload: str
    client: str

    @property
    def name(self) -> str:
        """As in `PLACES`."""
        return CGROUP

    def start(
        self, command: Sequence[str], log: Path, role: Role = Role.WORKLOAD, serves: Sequence[int] = ()
    ) -> subprocess.Popen[bytes]:
        group = self.client if role is Role.CLIENT else self.workload
        return _spawn(_entered(self.tree, group, command), log)

    def pids(self, child: subprocess.Popen[bytes]) -> tuple[int, ...]:
        return tuple(descendants(child.pid))


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
            return _spawn(_entered(self.tree, self.client, command), log)
        self.bundles.mkdir(parents=True, exist_ok=True)
        bundle = self.bundles / str(len(list(self.bundles.iterdir())))
        write_bundle(bundle, command, self.writable)
        contained = run_command(bundle, f"dasec-{os.getpid()}-{self.bundles.name}-{bundle.name}")
        return _spawn(_entered(self.tree, self.workload, contained), log)

    def pids(self, child: subprocess.Popen[bytes]) -> tuple[int, ...]:
        """Without crun, which only waits."""
        return tuple(pid for pid in descendants(child.pid) if pid != child.pid)


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
            return _spawn(_entered(self.tree, self.client, command), log)
        inside = (Path(command[0]).name, *command[1:])  # the guest has its own, where it may be elsewhere
        booted = qemu_command(image(), inside, self.workload.rpartition("/")[2], self.vcpus, serves)
        return _spawn(_entered(self.tree, self.workload, booted), log)

    def pids(self, child: subprocess.Popen[bytes]) -> tuple[int, ...]:
        return tuple(descendants(child.pid))


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


def _missing_guest() -> str | None:
    return _missing_group() or missing_qemu() or missing_image()


def missing_place(place: str) -> str | None:
    """As `PLACES` has it, where nothing is made."""
    return PLACES[place]()


def unready_place(place: str) -> str | None:
    """The same after making what processes need there: a guest's image takes a minute."""
    return PLACES[place]() or (unbuilt_image() if place == GUEST else None)


PLACES: Mapping[str, Callable[[], str | None]] = {
    HERE: lambda: None,
    CGROUP: _missing_group,
    CONTAINER: _missing_container,
    GUEST: _missing_guest,
}
"""All places by name, each with why it cannot be used on this host, in one line; None: it can."""
