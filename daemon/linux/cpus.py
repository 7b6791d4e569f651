"""What /sys says of the CPUs: which are online, which are not balanced, which node each is on."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress

from . import cpulist, procfs
from .errors import ThreadGone

SYSFS = "/sys"


def online(sysfs: str = SYSFS) -> frozenset[int]:
    """CPUs that run tasks now."""
    return _list_at(f"{sysfs}/devices/system/cpu/online")


def possible(sysfs: str = SYSFS) -> frozenset[int]:
    """CPUs that may ever be online while this kernel runs."""
    return _list_at(f"{sysfs}/devices/system/cpu/possible")


def isolated(sysfs: str = SYSFS) -> frozenset[int]:
    """CPUs that the scheduler does not balance: isolcpus=, and isolated cpuset partitions.

    A thread put there stays on the first CPU of its mask for ever (seapath/ansible #908).
    """
    partitions = _list_at(f"{sysfs}/fs/cgroup/cpuset.cpus.isolated")
    return _list_at(f"{sysfs}/devices/system/cpu/isolated") | partitions


def node_of(sysfs: str = SYSFS) -> Mapping[int, int]:
    """The NUMA node of each CPU; empty on a kernel without NUMA."""
    nodes: dict[int, int] = {}
    directory = f"{sysfs}/devices/system/node"
    with suppress(FileNotFoundError):
        for name in sorted(os.listdir(directory)):
            if name.startswith("node") and name[4:].isdigit():
                nodes.update(dict.fromkeys(_list_at(f"{directory}/{name}/cpulist"), int(name[4:])))
    return nodes


def cores_of(sysfs: str = SYSFS) -> Mapping[int, tuple[int, int]]:
    """Socket and core of each online CPU. Where a socket has several NUMA nodes, the node stands for the
    socket; where the kernel tells nothing, each CPU is a core of socket 0."""
    nodes, cores = node_of(sysfs), dict[int, tuple[int, int]]()
    for cpu in sorted(online(sysfs)):
        place = f"{sysfs}/devices/system/cpu/cpu{cpu}/topology"
        cores[cpu] = (
            _number_at(f"{place}/physical_package_id", 0),
            _number_at(f"{place}/core_id", cpu),
        )
    if len(set(nodes.values())) > len({socket for socket, _ in cores.values()}):
        # A die's core ids begin anew, so the socket's number goes into the core's.
        return {cpu: (nodes.get(cpu, 0), socket << 16 | core) for cpu, (socket, core) in cores.items()}
    return cores


def cache_of(sysfs: str = SYSFS) -> Mapping[int, int]:
    """The last-level cache of each online CPU, by the first CPU that has it. Where each core has one of its
    own, or the kernel tells nothing of caches, all of a socket are one."""
    caches, sockets, cores = dict[int, int](), dict[int, int](), cores_of(sysfs)
    for cpu, (socket, _) in cores.items():
        place = f"{sysfs}/devices/system/cpu/cpu{cpu}/cache"
        last = max(_indices(place), key=lambda index: _number_at(f"{place}/{index}/level", 0), default="")
        sharing = _list_at(f"{place}/{last}/shared_cpu_list") if last else frozenset[int]()
        of_one_core = len({cores[one] for one in sharing if one in cores}) < 2
        caches[cpu] = sockets.setdefault(socket, cpu) if of_one_core else min(sharing)
    return caches


def capacity_of(sysfs: str = SYSFS) -> Mapping[int, int]:
    """How much each online CPU does in a time, the largest 1024; empty where all are alike, or the kernel
    does not say. From cpu_capacity (arm, riscv), else from the highest performance of ACPI's CPPC (x86). What
    is within a tenth of the largest is the same: favoured cores of one kind differ by some percent."""
    here = f"{sysfs}/devices/system/cpu"
    for file in ("cpu_capacity", "acpi_cppc/highest_perf"):
        found = {cpu: _number_at(f"{here}/cpu{cpu}/{file}", 0) for cpu in online(sysfs)}
        largest = max(found.values(), default=0)
        if min(found.values(), default=0) > 0 and min(found.values()) * 10 < largest * 9:
            return {
                cpu: 1024 if number * 10 >= largest * 9 else number * 1024 // largest
                for cpu, number in found.items()
            }
    return {}


def _indices(place: str) -> list[str]:
    try:
        return sorted(name for name in os.listdir(place) if name.startswith("index"))
    except FileNotFoundError:
        return []


def _number_at(path: str, unknown: int) -> int:
    try:
        number = int(procfs.read_bytes(path))
    except (ThreadGone, ValueError):
        return unknown
    return number if number >= 0 else unknown  # -1: this architecture does not know


def _list_at(path: str) -> frozenset[int]:
    try:
        return cpulist.parse(procfs.read_bytes(path).decode())
    except (ThreadGone, ValueError):
        return frozenset()
