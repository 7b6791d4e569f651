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


def _list_at(path: str) -> frozenset[int]:
    try:
        return cpulist.parse(procfs.read_bytes(path).decode())
    except (ThreadGone, ValueError):
        return frozenset()
