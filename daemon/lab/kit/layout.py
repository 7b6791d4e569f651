"""Which cgroup each thread of a run lives in: the same for every arm, with or without a daemon.

`vm` is what libvirt makes of a host: below `machine` a group for each workload, in it one group
for each vCPU thread and `emulator` for the process's other threads. (One level is ours: where there
is an emulator, the vCPUs' groups have a parent `vcpus`, so that the daemon's configuration can name
them and nothing else; a domain, which it finds by libvirt's file, does without.) `flat` has one group
for each vCPU thread directly below `machine`, so that vCPUs compete with those of other workloads one by
one. `shared` is what Docker and systemd make: a group for each workload, and all of its threads in it.
Beside `machine` stand `client`, which gets (almost) all the CPU it asks for, so that the load generator
is not what is measured, and `daemon`.

The host's autogroup setting has no part in this: it only groups tasks of the top cpu cgroup.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from enum import StrEnum
from pathlib import PurePosixPath

from .scenario import Scenario, Tenant
from .tree import CLIENT, DAEMON, EMULATOR, LARGEST, MACHINE, NEUTRAL, TOP, Group

BESIDE = (Group(TOP, weight=LARGEST), Group(CLIENT, weight=LARGEST), Group(DAEMON))
"""What stands beside workloads whose groups somebody else makes: clients get all the CPU time that they ask
for."""


class GroupLayout(StrEnum):
    """How the workloads' groups hang together."""

    VM = "vm"
    FLAT = "flat"
    SHARED = "shared"


def groups_for(scenario: Scenario, layout: GroupLayout, *, limited: bool = True) -> tuple[Group, ...]:
    """All groups, parents first; without their CPU limits if not `limited`. The top one weighs as much as its
    vCPUs would without it, so that what else runs on the host does not get more of it than it would get from
    so many threads."""
    top = Group(TOP, weight=min(NEUTRAL * scenario.vcpus, LARGEST))
    fixed = (top, Group(MACHINE), Group(CLIENT, weight=LARGEST), Group(DAEMON))
    groups = fixed + tuple(group for tenant in scenario.tenants for group in _groups_of(tenant, layout))
    return groups if limited else tuple(replace(group, quota_cores=None) for group in groups)


def _groups_of(tenant: Tenant, layout: GroupLayout) -> Iterator[Group]:
    if layout is not GroupLayout.FLAT:
        yield Group(home_of(tenant, layout), weight=tenant.share, quota_cores=tenant.quota_cores)
    if layout is GroupLayout.SHARED:
        return
    if (around := managed_group(tenant, layout)) != home_of(tenant, layout):
        yield Group(around, threaded=True)
    for index in range(tenant.vcpus):
        yield Group(vcpu_group(tenant, layout, index), threaded=True, quota_cores=tenant.vcpu_quota_cores)
    if tenant.has_emulator:
        yield Group(emulator_group(tenant, layout), threaded=True)


def home_of(tenant: Tenant, layout: GroupLayout) -> str:
    """The group that the workload's process starts in."""
    return MACHINE if layout is GroupLayout.FLAT else f"{MACHINE}/{tenant.name}"


def vm_level(tree: str, tenant: Tenant, layout: GroupLayout) -> int:
    """The depth of the groups that our scheduler takes for VMs, below a tree of that name: each has the
    emulator's group in it, as libvirt's scopes have."""
    return len((PurePosixPath(tree) / home_of(tenant, layout)).parts) - 1


def managed_group(tenant: Tenant, layout: GroupLayout = GroupLayout.VM) -> str:
    """The group that has all vCPUs of a workload in it or below it, and as `vm` nothing else, unless it is a
    domain."""
    home = home_of(tenant, layout)
    is_apart = tenant.has_emulator and not tenant.is_domain and layout is GroupLayout.VM
    return f"{home}/vcpus" if is_apart else home


def vcpu_group(tenant: Tenant, layout: GroupLayout, index: int) -> str:
    """The group of one vCPU thread."""
    if layout is GroupLayout.VM:
        return f"{managed_group(tenant)}/vcpu{index}"
    if layout is GroupLayout.SHARED:
        return home_of(tenant, layout)
    return f"{MACHINE}/{tenant.name}-vcpu{index}"


def emulator_group(tenant: Tenant, layout: GroupLayout) -> str:
    """The group of the threads that are no vCPUs."""
    if layout is GroupLayout.SHARED:
        return home_of(tenant, layout)
    separator = "/" if layout is GroupLayout.VM else "-"
    return f"{MACHINE}/{tenant.name}{separator}{EMULATOR}"


def share_of(tenant: Tenant, layout: GroupLayout) -> int:
    """The workload's share of the host that these groups give it."""
    return NEUTRAL * tenant.vcpus if layout is GroupLayout.FLAT else tenant.share
