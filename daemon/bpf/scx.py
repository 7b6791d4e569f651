"""Our scheduler (scx_dasec.bpf.c) in the kernel, for as long as this process holds it.

The kernel falls back to its own scheduler as soon as the process ends, however it ends, and if the program
does something wrong or lets a thread wait for five seconds.
"""

from __future__ import annotations

import ctypes
import os
import struct
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

from ..linux import cgroupfs, cpus, extwords, sched_ext
from ..linux.cgroupfs import Hierarchy
from ..linux.one_line import one_line
from ..model import Level
from .extent import Extent
from .libbpf import BpfObject, BpfUnavailable, load

OBJECT = "scx_dasec"
OPERATIONS, PARTIAL = "dasec_ops", "dasec_partial_ops"
SLEEPABLE = ("dasec_init_task", "dasec_cgroup_init", "dasec_init")
ISOLATED = Path("/sys/devices/system/cpu/isolated")
CGROUPS = Path("/sys/fs/cgroup")

MAX_CPUS = 1024
MAX_VMS = 1024
REST = 1
"""As in scx_dasec.bpf.c: the slot of user threads in no group that has one of its own."""

MS = 1_000_000
_UNTIL = struct.Struct("=Q")
_FLAG = struct.Struct("=I")

NOTHING = Extent(Level.NONE, slots=1, edges=1)


class Options(ctypes.Structure):
    """`struct options` of scx_dasec.bpf.c; docs/sched-ext.md#the-rule has the reasons for each number."""

    _fields_ = (
        ("cpus", ctypes.c_uint32),
        ("vm_level", ctypes.c_uint32),
        ("debt_ns", ctypes.c_uint64),
        ("slice_ns", ctypes.c_uint64),
        ("critical_slice_ns", ctypes.c_uint64),
        ("bucket_ns", ctypes.c_uint64),
        ("overdue_ns", ctypes.c_uint64),
        ("turn_ns", ctypes.c_uint64),
        ("touch_ns", ctypes.c_uint64),
        ("short_ns", ctypes.c_uint64),
        ("endless_ns", ctypes.c_uint64),
        ("far_ns", ctypes.c_uint64),
        ("modest_ns", ctypes.c_uint64),
        ("bucket_percent", ctypes.c_uint32),
        ("chain_percent", ctypes.c_uint32),
        ("caches", ctypes.c_uint32),
        ("is_hybrid", ctypes.c_uint32),
        ("nodes", ctypes.c_uint32),
        ("counts_switches", ctypes.c_uint32),
        ("cache_of", ctypes.c_uint16 * MAX_CPUS),
        ("node_of", ctypes.c_uint16 * MAX_CPUS),
        ("is_largest", ctypes.c_uint8 * MAX_CPUS),
    )


class _Vm(ctypes.Structure):
    """`struct vm` of scx_dasec.bpf.c."""

    _fields_ = (
        ("time", ctypes.c_uint64),
        ("used_ns", ctypes.c_uint64),
        ("critical_ns", ctypes.c_uint64),
        ("cgroup", ctypes.c_uint64),
        ("weight", ctypes.c_uint32),
        ("threads", ctypes.c_uint32),
        ("level", ctypes.c_uint32),
        ("above", ctypes.c_uint32),
        ("moved", ctypes.c_uint64),
        ("modest_from", ctypes.c_uint64),
        ("critical_since", ctypes.c_uint64),
        ("waits", ctypes.c_uint32 * 2),
        ("shared", ctypes.c_uint32 * 2),
        ("taking", ctypes.c_uint32),
        ("counted", ctypes.c_uint32),
        ("chain", ctypes.c_uint32),
        ("worth", ctypes.c_uint32),
        ("presence", ctypes.c_uint32),
        ("busy", ctypes.c_uint32),
        ("usually_busy", ctypes.c_uint32),
        ("busy_below", ctypes.c_uint32),
        ("active_ns", ctypes.c_uint64),
        ("weight_below", ctypes.c_uint64),
        ("usual_weight", ctypes.c_uint64),
        ("due", ctypes.c_uint64),
        ("used_below", ctypes.c_uint64),
        ("seen_ns", ctypes.c_uint64),
        ("has_queues", ctypes.c_bool),
    )


class _Ending(ctypes.Structure):
    """`struct ending` of scx_dasec.bpf.c."""

    _fields_ = (
        ("code", ctypes.c_int64),
        ("kind", ctypes.c_uint32),
        ("unused", ctypes.c_uint32),
        ("reason", ctypes.c_char * 128),
        ("message", ctypes.c_char * 256),
    )


class VmTime(NamedTuple):
    """What a VM has had since the scheduler was loaded: CPU time, and how much of it as critical. `cgroup` is
    the inode number of its group; 0 stands for all threads in no group of their own."""

    cgroup: int
    weight: int
    used_ns: int
    critical_ns: int


def options(vm_level: int, sysfs: str = cpus.SYSFS) -> Options:
    """The scheduler's own numbers, for VMs that are the cgroups at this depth, and what it has to know of the
    CPUs. Raises BpfUnavailable if there are too many."""
    caches, nodes, capacities = cpus.cache_of(sysfs), _by_first(cpus.node_of(sysfs)), cpus.capacity_of(sysfs)
    largest = max(capacities.values(), default=0)
    return Options(
        cpus=len(_possible(sysfs)),
        vm_level=vm_level,
        debt_ns=100 * MS,
        slice_ns=4 * MS,
        critical_slice_ns=1 * MS,
        bucket_ns=100 * MS,
        overdue_ns=300 * MS,
        turn_ns=1000 * MS,
        touch_ns=3000 * MS,
        short_ns=5 * MS,
        endless_ns=50 * MS,
        far_ns=40 * MS,
        modest_ns=40 * MS,
        bucket_percent=50,
        chain_percent=25,
        caches=len(set(caches.values())),
        is_hybrid=bool(capacities),
        nodes=len(set(nodes.values())) if _have_several(nodes, caches) else 0,
        cache_of=tuple(caches.get(cpu, cpu) for cpu in range(MAX_CPUS)),
        node_of=tuple(nodes.get(cpu, cpu) for cpu in range(MAX_CPUS)),
        is_largest=tuple(bool(capacities) and capacities.get(cpu) == largest for cpu in range(MAX_CPUS)),
    )


class Scheduler:
    """In the kernel, until close() or the end of this process; it schedules from begin() to end(). `partial`:
    threads of policy SCHED_EXT only, after all that the kernel's own has to run. `extent`: what a monitor may
    count of the threads that it follows (wake_edges.py), in its maps. Raises BpfUnavailable where it cannot
    be loaded."""

    def __init__(self, chosen: Options, *, partial: bool = False, extent: Extent = NOTHING) -> None:
        refuse_what_it_cannot_keep()
        self._operations = PARTIAL if partial else OPERATIONS
        self._level = chosen.vm_level
        self.object = _verified(chosen, self._operations, extent)
        try:
            self._ending = self.object.view("endings", ctypes.sizeof(_Ending))
            self._vms = self.object.view("vms", MAX_VMS * ctypes.sizeof(_Vm))
            self._attended = self.object.view("attended", _UNTIL.size, writable=True)
            self._counting = self.object.view(".data.counting", _FLAG.size, writable=True)
            self._words = extwords.Words(self.object.map_descriptor("dasec_words"))
        except BaseException:
            self.object.close()
            raise

    def begin(self) -> None:
        """From now on it schedules, and what this process says of threads is said to it. Raises
        BpfUnavailable."""
        self.object.attach_operations(self._operations)
        extwords.hold(self._words)

    def end(self) -> None:
        """Give the kernel its own scheduler back; what was counted stays. Idempotent."""
        self.object.detach(self._operations)

    def ended(self) -> str | None:
        """None while it schedules; else why the kernel put it out, in one line."""
        ending = _Ending.from_buffer_copy(self._ending)
        if not ending.kind:
            return None
        words = (ending.reason, ending.message)
        return ": ".join(word.decode(errors="replace") for word in words if word) or f"code {ending.code}"

    def attend(self, until_ns: int) -> None:
        """Until then (CLOCK_MONOTONIC) it goes by what is said of threads (linux/extwords.py)."""
        _UNTIL.pack_into(self._attended, 0, until_ns)

    def count_switches(self, wanted: bool) -> None:
        """See CountsSwitches. Where it is closed, nobody counts."""
        if not self._counting.closed:
            _FLAG.pack_into(self._counting, 0, wanted)

    def vms(self) -> list[VmTime]:
        """All VMs, the rest of the system, and groups above VMs that have run something of their own."""
        found = list((_Vm * MAX_VMS).from_buffer_copy(self._vms))
        return [
            VmTime(vm.cgroup, vm.weight, vm.used_ns, vm.critical_ns)
            for slot, vm in enumerate(found)
            if vm.weight and slot >= REST and (vm.level in (0, self._level) or vm.used_ns)
        ]

    def close(self) -> None:
        """Give the kernel its own scheduler back, and leave nothing in it. Idempotent."""
        extwords.let_go(self._words)
        self.object.close()

    def __enter__(self) -> Scheduler:
        try:
            self.begin()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def refuse_what_it_cannot_keep(
    sysfs: Path = sched_ext.SYSFS, cgroups: Path = CGROUPS, isolated: Path = ISOLATED
) -> None:
    """BpfUnavailable, in one line, where the scheduler must not be loaded."""
    if not sysfs.is_dir():
        raise BpfUnavailable(
            "this kernel has no sched_ext (CONFIG_SCHED_CLASS_EXT, Linux 6.12 or later; of Debian's, 7.2 and"
            " later have it, also in Debian 13's backports)"
        )
    if (state := sched_ext.state(sysfs)) != "disabled":
        name = sched_ext.name(sysfs) or "another one"
        raise BpfUnavailable(f"the sched_ext scheduler {name} is {state} already: stop it first")
    if cpus := one_line(isolated):
        raise BpfUnavailable(
            f"CPUs {cpus} are isolated (isolcpus=), and with such the kernel takes no sched_ext"
        )
    if not (cgroups / "cgroup.controllers").exists():
        raise BpfUnavailable(f"{cgroups} is not cgroup v2, whose groups are the VMs")
    if (cgroups / "cgroup.type").exists():  # every group has one but the top
        raise BpfUnavailable(
            f"{cgroups} shows a part of all groups, as in a container, and CPU limits of the others would not"
            " be kept: start it in the host's cgroup namespace"
        )
    for limit in limits(cgroups):
        raise BpfUnavailable(f"{limit}, and sched_ext of 6.12 keeps none")


def limits(cgroups: Path = CGROUPS) -> Iterator[str]:
    """Every CPU limit that is set, in words."""
    tree = _tree(cgroups)
    for directory in map(tree.directory, groups(cgroups)):
        if (said := one_line(f"{directory}/cpu.max")) and not said.startswith("max"):
            yield f"{directory} has a CPU limit ({said})"


def no_vms(level: int, cgroups: Path = CGROUPS) -> str | None:
    """In one line, that groups at this depth are no VMs, for want of the cpu controller; None if all are."""
    tree = _tree(cgroups)
    lacking = [
        group
        for group in groups(cgroups)
        if cgroupfs.depth(group) == level
        and not os.path.exists(tree.weight_file(group))
        and "populated 1" in one_line(f"{tree.directory(group)}/cgroup.events")
    ]
    if not lacking:
        return None
    above, _, _ = lacking[0].rpartition("/")
    others = f"all others of {above[1:]}" if above else "all that are in no group"
    return (
        f"{lacking[0][1:]}, one of {len(lacking)} such groups at depth {level}, is no VM but shares"
        f" as one with {others}: no cpu in {tree.directory(above)}/cgroup.subtree_control"
    )


def groups(cgroups: Path = CGROUPS) -> tuple[str, ...]:
    """All of them as /proc names them, outer ones first; none deeper than cgroupfs.DEEPEST."""
    return _tree(cgroups).below("/", most=sys.maxsize).groups


def _tree(cgroups: Path) -> Hierarchy:
    return Hierarchy(2, str(cgroups), "/")


def why_not() -> str | None:
    """Why the scheduler cannot be loaded here, as far as can be told without loading it; None if it can."""
    try:
        refuse_what_it_cannot_keep()
    except BpfUnavailable as error:
        return str(error)
    return None


def why_not_tried(vm_level: int) -> str | None:
    """The same, tried: the kernel verifies all programs, none of which is ever run."""
    if (why := why_not()) is not None:
        return why
    try:
        _verified(options(vm_level), OPERATIONS, NOTHING).close()
    except BpfUnavailable as error:
        return str(error)
    return None


def _verified(chosen: Options, operations: str, extent: Extent) -> BpfObject:
    """In the kernel, and scheduling nobody yet."""
    told = Options.from_buffer_copy(chosen)
    told.counts_switches = extent.level is Level.FULL
    if operations == PARTIAL:  # the kernel's own may have the CPUs that are due to a VM
        told.modest_ns = 0
    return load(
        OBJECT,
        sizes={"stays": (1 + chosen.cpus) * MAX_VMS, **extent.sizes()},
        without=extent.left_out(),
        options=told,
        operations=operations,
        sleepable=SLEEPABLE,
    )


def _by_first(nodes: Mapping[int, int]) -> Mapping[int, int]:
    """The node of each CPU, by the first CPU of it instead of its number."""
    firsts = {nodes[cpu]: cpu for cpu in sorted(nodes, reverse=True)}
    return {cpu: firsts[node] for cpu, node in nodes.items()}


def _have_several(nodes: Mapping[int, int], caches: Mapping[int, int]) -> bool:
    """Whether there are several nodes, and one with several caches: else a node says no more than a cache."""
    pairs = {(nodes[cpu], cache) for cpu, cache in caches.items() if cpu in nodes}
    return len(pairs) > len({node for node, _ in pairs}) > 1


def _possible(sysfs: str) -> range:
    """CPUs that may ever be online; they are numbered from 0."""
    last = max(cpus.possible(sysfs))
    if last >= MAX_CPUS:
        raise BpfUnavailable(f"this machine may have {last + 1} CPUs, and the scheduler knows {MAX_CPUS}")
    return range(last + 1)
