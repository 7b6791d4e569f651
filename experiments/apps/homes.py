"""Which cgroup each thread of an application lives in: the demo's groups, the same for every arm."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from dasec.baselines.names import matches
from dasec.demo.controller import Managed
from dasec.demo.layout import (
    Group,
    Layout,
    emulator_group,
    groups_for,
    home_of,
    managed_group,
    share_of,
    vcpu_group,
)
from dasec.demo.process import named_threads
from dasec.demo.scenario import Memcached, Scenario
from dasec.demo.tree import Tree

from .cells import Cell, Instance

Thread = tuple[int, int, str]
"""Process id, thread id, name."""


@dataclass(frozen=True, slots=True)
class Home:
    """The groups of one instance. To the layout every application is what a memcached is: vCPUs, and
    perhaps other threads."""

    tree: Tree
    layout: Layout
    instance: Instance

    @property
    def _tenant(self) -> Memcached:
        return Memcached(self.instance.name, threads=self.instance.workload.threads)

    @property
    def group(self) -> str:
        """Where its processes start."""
        return home_of(self._tenant, self.layout)

    def settle(self, pids: Iterable[int]) -> tuple[Thread, ...]:
        """Every vCPU thread into a group of its own, all others into the emulator's; the vCPUs."""
        threads = threads_of(pids)
        patterns = self.instance.workload.vcpus or ("*",)
        vcpus = [one for one in threads if any(matches(pattern, one[2]) for pattern in patterns)]
        for index, (_, tid, _) in enumerate(vcpus):
            name = vcpu_group(self._tenant, self.layout, index)
            if index >= self.instance.workload.threads:
                self.tree.make([Group(name, threaded=True)])
            self._place(tid, name)
        for one in threads:
            if one not in vcpus:
                self._place(one[1], emulator_group(self._tenant, self.layout))
        return tuple(vcpus)

    def managed(self, pids: tuple[int, ...]) -> Managed:
        """As the daemon is told."""
        group = managed_group(self._tenant)
        cgroup = f"{self.tree.name}/{group}" if self.layout is Layout.VM else None
        return Managed(self.instance.name, share_of(self._tenant, self.layout), pids, cgroup)

    def _place(self, tid: int, group: str) -> None:
        with contextlib.suppress(ProcessLookupError):  # a thread that has ended needs no place
            self.tree.place(tid, group)


def make_homes(tree: Tree, cell: Cell, cores: int) -> tuple[Home, ...]:
    """The groups of all instances, made."""
    homes = tuple(Home(tree, Layout(cell.layout), instance) for instance in cell.instances)
    tree.make(groups_for(Scenario(cores, tuple(home._tenant for home in homes)), Layout(cell.layout)))
    return homes


def threads_of(pids: Iterable[int]) -> Sequence[Thread]:
    """All threads of these processes, in the order of their ids; a process that has ended has none."""
    found: list[Thread] = []
    for pid in pids:
        with contextlib.suppress(OSError):
            found += [(pid, tid, name) for tid, name in named_threads(pid)]
    return sorted(found, key=lambda thread: thread[1])
