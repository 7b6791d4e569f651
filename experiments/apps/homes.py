"""Which cgroup each thread of an application lives in: the demo's groups, the same for every arm."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from dasec.baselines.names import matches
from dasec.demo.controller import Managed
from dasec.demo.layout import (
    CLIENT,
    Group,
    Layout,
    emulator_group,
    groups_for,
    home_of,
    managed_group,
    share_of,
    vcpu_group,
)
from dasec.demo.process import ENTER, named_threads
from dasec.demo.scenario import Memcached, Scenario
from dasec.demo.tree import Tree

from .cells import Cell, Instance
from .driver import Role

Thread = tuple[int, int, str]
"""Process id, thread id, name."""


@dataclass(slots=True)
class Home:
    """The groups of one instance, and who lives in them. To the layout every application is what a memcached
    is: vCPUs, and perhaps other threads. As a place, it starts processes in its groups."""

    tree: Tree
    layout: Layout
    instance: Instance
    vcpus: list[Thread] = field(default_factory=list)
    others: set[int] = field(default_factory=set)
    name: str = "cgroup"

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

    def start(self, command: Sequence[str], log: Path, role: Role = Role.WORKLOAD) -> subprocess.Popen[bytes]:
        """A process in the instance's group, or in that of all clients. It gets no Ctrl-C of ours."""
        group = home_of(self.tenant, self.layout) if role is Role.WORKLOAD else CLIENT
        with log.open("wb") as output:
            return subprocess.Popen(
                ["/bin/sh", "-c", ENTER, str(self.tree.entry(group)), *command],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def pids(self, child: subprocess.Popen[bytes]) -> tuple[int, ...]:
        """It and all that came from it: the processes of its session."""
        if child.poll() is not None:
            return ()
        mine = self.tree.processes(home_of(self.tenant, self.layout)) | {child.pid}
        return tuple(sorted(pid for pid in mine if _session_of(pid) == child.pid))

    def settle(self, pids: Iterable[int]) -> None:
        """Every vCPU thread that is new into a group of its own, all others into the emulator's."""
        patterns = self.instance.workload.vcpus or ("*",)
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

    def managed(self, pids: tuple[int, ...]) -> Managed:
        """As the daemon is told."""
        cgroup = f"{self.tree.name}/{managed_group(self.tenant)}" if self.layout is Layout.VM else None
        return Managed(self.instance.name, share_of(self.tenant, self.layout), pids, cgroup)


def make_homes(tree: Tree, cell: Cell, cores: int) -> tuple[Home, ...]:
    """The groups of all instances, made."""
    homes = tuple(Home(tree, Layout(cell.layout), instance) for instance in cell.instances)
    tree.make(groups_for(Scenario(cores, tuple(home.tenant for home in homes)), Layout(cell.layout)))
    return homes


def threads_of(pids: Iterable[int]) -> Sequence[Thread]:
    """All threads of these processes, in the order of their ids; a process that has ended has none."""
    found: list[Thread] = []
    for pid in pids:
        with contextlib.suppress(OSError):
            found += [(pid, tid, name) for tid, name in named_threads(pid)]
    return sorted(found, key=lambda thread: thread[1])


def _session_of(pid: int) -> int:
    try:
        return os.getsid(pid)
    except ProcessLookupError:
        return 0
