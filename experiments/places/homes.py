"""Which cgroup each thread of an application lives in: the demo's groups, the same for every arm."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from dasec.critical.names import matches
from dasec.lab.kit.controller import Managed
from dasec.lab.kit.layout import (
    CLIENT,
    Group,
    GroupLayout,
    emulator_group,
    groups_for,
    home_of,
    managed_group,
    share_of,
    vcpu_group,
)
from dasec.lab.kit.process import named_threads
from dasec.lab.kit.scenario import Memcached, Scenario
from dasec.lab.kit.tree import Tree

from ..drivers.driver import CONTAINER, GUEST, Place
from ..plan.points import Cell, Instance
from .guest import VCPUS
from .places import InContainer, InGroup, InGuest

Thread = tuple[int, int, str]
"""Process id, thread id, name."""

CONTAINERS = "containers"
"""The folder of the containers' files."""


@dataclass(slots=True)
class Home:
    """The groups of one instance, and who lives in them. To the layout every application is what a memcached
    is: vCPUs, and perhaps other threads."""

    tree: Tree
    layout: GroupLayout
    instance: Instance
    where: str
    """The place's name."""
    vcpus: list[Thread] = field(default_factory=list)
    others: set[int] = field(default_factory=set)

    @property
    def tenant(self) -> Memcached:
        """As the layout sees it."""
        return Memcached(self.instance.name, threads=self.instance.vcpus)

    @property
    def critical(self) -> tuple[str, ...]:
        """Whom blame is counted of: those that requests wait for, or else everybody."""
        return self.instance.critical or ("*",)

    def threads(self) -> Sequence[Thread]:
        """The vCPUs."""
        return self.vcpus

    def place(self, files: Path, writable: Path) -> Place:
        """Where its processes start: the demo's groups, in a container or a guest if the cell says so."""
        home = home_of(self.tenant, self.layout)
        if self.where == CONTAINER:
            return InContainer(self.tree, home, CLIENT, files / CONTAINERS / self.instance.name, (writable,))
        if self.where == GUEST:
            return InGuest(self.tree, home, CLIENT, self.instance.vcpus)
        return InGroup(self.tree, home, CLIENT)

    def settle(self, pids: Iterable[int]) -> None:
        """Every vCPU thread that is new into a group of its own, all others into the emulator's."""
        patterns = VCPUS if self.where == GUEST else self.instance.workload.vcpus or ("*",)
        known = self.others | {tid for _, tid, _ in self.vcpus}
        for one in threads_of(pids):
            _, tid, name = one
            if tid in known:
                continue
            if any(matches(pattern, name) for pattern in patterns):
                group = vcpu_group(self.tenant, self.layout, len(self.vcpus))
                if len(self.vcpus) >= self.instance.vcpus:
                    self.tree.make([Group(group, threaded=True)])
                self.vcpus.append(one)
            else:
                group = emulator_group(self.tenant, self.layout)
                self.others.add(tid)
            with contextlib.suppress(ProcessLookupError):  # a thread that has ended needs no place
                self.tree.place(tid, group)

    def managed(self, pids: tuple[int, ...]) -> Managed | None:
        """As the daemon is told; None for whom it cannot know: no group around its vCPUs, no process yet."""
        cgroup = f"{self.tree.name}/{managed_group(self.tenant)}" if self.layout is GroupLayout.VM else None
        if not pids and not cgroup:
            return None
        return Managed(self.instance.name, share_of(self.tenant, self.layout), pids, cgroup)


def make_homes(tree: Tree, cell: Cell, cores: int) -> tuple[Home, ...]:
    """The groups of all instances, made."""
    layout = GroupLayout(cell.layout)
    homes = tuple(Home(tree, layout, instance, cell.place) for instance in cell.instances)
    tree.make(groups_for(Scenario(cores, tuple(home.tenant for home in homes)), layout))
    return homes


def threads_of(pids: Iterable[int]) -> Sequence[Thread]:
    """All threads of these processes, in the order of their ids; a process that has ended has none."""
    found: list[Thread] = []
    for pid in pids:
        with contextlib.suppress(OSError):
            found += [(pid, tid, name) for tid, name in named_threads(pid)]
    return sorted(found, key=lambda thread: thread[1])
