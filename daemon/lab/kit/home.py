"""The groups of one workload in a run, and who lives in them: the same for every arm."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from ...critical.names import matches
from .controller import Managed
from .errors import failure
from .layout import (
    GroupLayout,
    emulator_group,
    groups_for,
    home_of,
    managed_group,
    share_of,
    vcpu_group,
)
from .process import name_of, thread_ids
from .scenario import Scenario, Tenant
from .tree import Group, Tree

Thread = tuple[int, int, str]
"""Process id, thread id, name."""


@dataclass(slots=True)
class TenantHome:
    """Where a workload lives."""

    tree: Tree
    layout: GroupLayout
    tenant: Tenant
    vcpus: list[Thread] = field(default_factory=list)
    others: set[int] = field(default_factory=set)

    @property
    def group(self) -> str:
        """That its processes start in."""
        return home_of(self.tenant, self.layout)

    @property
    def critical(self) -> tuple[str, ...]:
        """Names of the threads that requests wait for."""
        return self.tenant.critical

    def threads(self) -> Sequence[Thread]:
        """The vCPUs."""
        return self.vcpus

    def settle(self, pids: Iterable[int]) -> None:
        """Every vCPU thread that is new into a group of its own, all others into the emulator's."""
        known = self.others | {tid for _, tid, _ in self.vcpus}
        for pid, tid in sorted(thread_ids(pids), key=lambda each: each[1]):
            if tid not in known:
                with contextlib.suppress(OSError):  # a thread that has ended needs no place
                    self._settle(pid, tid, name_of(pid, tid))

    def _settle(self, pid: int, tid: int, name: str) -> None:
        if any(matches(pattern, name) for pattern in self.tenant.vcpu_names):
            group = vcpu_group(self.tenant, self.layout, len(self.vcpus))
            if len(self.vcpus) >= self.tenant.vcpus and self.layout is not GroupLayout.SHARED:
                self.tree.make([Group(group, threaded=True)])
            self.vcpus.append((pid, tid, name))
        else:
            group = emulator_group(self.tenant, self.layout)
            self.others.add(tid)
        if group != self.group:
            self.tree.place(tid, group)

    def ensure_complete(self) -> None:
        """Refusal if it has other threads than its scenario says: something else would be measured."""
        if self.tenant.is_exact and len(self.vcpus) != self.tenant.vcpus:
            names = ", ".join(name for _, _, name in self.vcpus)
            raise failure(f"{self.tenant.name}: {self.tenant.vcpus} vCPU threads expected among: {names}")

    def managed(self, pids: tuple[int, ...]) -> Managed | None:
        """As the daemon is told; None for whom it cannot know: no group around its vCPUs, no process yet."""
        share = share_of(self.tenant, self.layout)
        if self.tenant.is_domain:
            return Managed(self.tenant.name, share, pids, libvirt=self.tenant.name)
        flat = self.layout is GroupLayout.FLAT
        cgroup = None if flat else f"{self.tree.name}/{managed_group(self.tenant, self.layout)}"
        if not pids and not cgroup:
            return None
        return Managed(self.tenant.name, share, pids, cgroup)


def make_homes(
    tree: Tree, scenario: Scenario, layout: GroupLayout, *, limited: bool
) -> tuple[TenantHome, ...]:
    """The groups of all workloads, made."""
    tree.make(groups_for(scenario, layout, limited=limited))
    return tuple(TenantHome(tree, layout, tenant) for tenant in scenario.tenants)
