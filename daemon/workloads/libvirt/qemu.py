"""From a domain's status to threads that are certainly its vCPUs, and to QEMU's own beside them.

A status outlives its QEMU when that dies while libvirtd is away, and thread ids are handed out again. So a
thread is taken only if its process has the domain's UUID among its arguments, its own name is a vCPU's, and,
where libvirt made groups for the domain's threads, it sits in the one of its number. From then on its start
time says who it is.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from ...linux import procfs
from ...linux.cgroupfs import Hierarchy
from ...linux.errors import HierarchyMissing, ThreadGone
from ...roster import Terms
from .status_file import DomainStatus, VcpuThread

VCPU_NAME = re.compile(r"CPU \d+/")
"""What QEMU calls a vCPU's thread ("CPU 0/KVM", "CPU 0/TCG") under `debug-threads=on`, which libvirt always
asks for. Others are called "worker", "IO iothread1", "call_rcu"; the main one "qemu-system-x86"."""

IO_NAME = re.compile(r"IO iothread(\d+)")
"""What QEMU calls an I/O thread: libvirt names the object after its number (virDomainIOThreadIDDef)."""

EMULATOR = "emulator"
"""libvirt's group for all threads that are no vCPUs and no I/O threads (VIR_CGROUP_THREAD_EMULATOR)."""

NESTED = "libvirt"
"""Below a systemd scope libvirt makes this one around its own groups. It has the quota, the scope
the share."""


class Sighting(NamedTuple):
    """The vCPUs found, in order, and after them QEMU's main and I/O threads if they were asked for; the group
    around the domain, if it has one; the QEMU process's start time; and who was not (yet) taken, and why."""

    threads: tuple[tuple[int, int], ...] = ()
    terms: tuple[Terms, ...] = ()
    home: str | None = None
    started_ticks: int | None = None
    left_out: tuple[str, ...] = ()


def sight(status: DomainStatus, hierarchy: Hierarchy | None, proc: str = procfs.PROC) -> Sighting:
    """The vCPUs of a domain as they are now."""
    pid = status.pid
    try:
        started_ticks = procfs.read_stat(pid, pid, proc).start_ticks
        if status.uuid.encode() not in procfs.read_bytes(f"{proc}/{pid}/cmdline").split(b"\0"):
            return Sighting(left_out=(f"process {pid} does not run it (any more)",))
        main_group = _group(hierarchy, pid, pid, proc)
    except ThreadGone:
        return Sighting()
    except OSError as error:
        return Sighting(left_out=(f"process {pid} cannot be read: {error.strerror}",))
    grouped = main_group.rpartition("/")[2] == EMULATOR
    taken: list[tuple[VcpuThread, Terms]] = []
    left_out: list[str] = []
    for vcpu in status.vcpus:
        try:
            stat = procfs.read_stat(pid, vcpu.tid, proc)
            group = _group(hierarchy, pid, vcpu.tid, proc)
        except ThreadGone:
            continue
        except OSError as error:
            left_out.append(f"thread {vcpu.tid} cannot be read: {error.strerror}")
            continue
        if not VCPU_NAME.match(stat.comm):
            left_out.append(f"thread {vcpu.tid} has no vCPU's name: {stat.comm!r}")
        elif grouped and group.rpartition("/")[2] != f"vcpu{vcpu.number}":
            left_out.append(f"thread {vcpu.tid} is not in the group of vCPU {vcpu.number}: {group}")
        else:
            taken.append((vcpu, Terms(stat.start_ticks, vcpu.cores)))
    home = _home(main_group) if grouped else None
    threads = tuple((pid, vcpu.tid) for vcpu, _ in taken)
    return Sighting(threads, tuple(terms for _, terms in taken), home, started_ticks, tuple(left_out))


def sight_with_emulator(
    status: DomainStatus, hierarchy: Hierarchy | None, proc: str = procfs.PROC
) -> Sighting:
    """The vCPUs, and beside them QEMU's main thread and its I/O threads: they carry packets and complete I/O.
    Only where libvirt made groups: elsewhere what they have would be taken from, or given to, neighbours of
    the domain."""
    found = sight(status, hierarchy, proc)
    if not found.threads or found.started_ticks is None:
        return found
    if found.home is None:
        why = f"QEMU's main thread {status.pid} is in no group {EMULATOR} of libvirt's"
        return found._replace(left_out=(*found.left_out, why))
    io_threads = _io_threads(status, hierarchy, proc)
    left_out = found.left_out
    if len(io_threads) < status.io_threads:
        those = f"{len(io_threads)} of {status.io_threads} I/O threads"
        left_out = (*left_out, f"only {those} have the names and groups that libvirt gives them")
    own = ((found.started_ticks, status.pid), *io_threads)
    return found._replace(
        threads=(*found.threads, *((status.pid, tid) for _, tid in own)),
        terms=(*found.terms, *(Terms(start_ticks, None, emulator=True) for start_ticks, _ in own)),
        left_out=left_out,
    )


def _io_threads(status: DomainStatus, hierarchy: Hierarchy | None, proc: str) -> tuple[tuple[int, int], ...]:
    """Start time and id of each I/O thread: it has the name of one, and sits in the group that libvirt made
    for that number. One that it starts has its name and group as well at first, so the oldest is it."""
    found: dict[int, tuple[int, int]] = {}
    for tid in procfs.thread_ids(status.pid, proc) if status.io_threads else ():
        try:
            stat = procfs.read_stat(status.pid, tid, proc)
            named = IO_NAME.fullmatch(stat.comm)
            if named and _group(hierarchy, status.pid, tid, proc).rpartition("/")[2] == f"iothread{named[1]}":
                this = stat.start_ticks, tid
                found[int(named[1])] = min(found.get(int(named[1]), this), this)
        except (ThreadGone, OSError):
            continue
    return tuple(found[number] for number in sorted(found))


def still_there(status: DomainStatus, sighting: Sighting, proc: str = procfs.PROC) -> bool:
    """Is the process the one that was sighted?"""
    try:
        return procfs.read_stat(status.pid, status.pid, proc).start_ticks == sighting.started_ticks
    except ThreadGone:
        return sighting.started_ticks is None
    except OSError:
        return False  # sighted anew, which says why it cannot be read


def _group(hierarchy: Hierarchy | None, pid: int, tid: int, proc: str) -> str:
    if hierarchy is None:
        return ""
    try:
        return hierarchy.group_of(pid, tid, proc)
    except HierarchyMissing:
        return ""


def _home(emulator: str) -> str:
    domain = emulator.rpartition("/")[0]
    parent, _, last = domain.rpartition("/")
    return parent if last == NESTED and parent else domain
