"""Everything of the host that DASEC can change, so that "exactly as it was" can be proven."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import NamedTuple

from ..knobs.knob import NativeValue
from ..linux import affinity, bandwidth, cgroupfs, dasecfile, procfs, schedattr
from ..linux.errors import HierarchyMissing, ThreadGone
from ..model import VcpuId


class Fingerprint(NamedTuple):
    """What every thread has (slice_ns, nice, policy, affinity, cgroup; with our kernel patch also
    granularity_ns and weight), and every cpu group's weight, quota and burst."""

    threads: Mapping[VcpuId, Mapping[str, NativeValue]]
    groups: Mapping[str, Mapping[str, NativeValue]]


def fingerprint(pids: Iterable[int] | None = None) -> Fingerprint:
    """Of these processes, by default of every process that is not the kernel's own; and of all groups."""
    try:
        hierarchy = cgroupfs.find_hierarchy()
    except HierarchyMissing:
        return Fingerprint(dict(_threads(pids, None)), {})
    return Fingerprint(dict(_threads(pids, hierarchy)), dict(_groups(hierarchy)))


def differences(before: Fingerprint, after: Fingerprint) -> tuple[str, ...]:
    """One line for each thing that changed. Threads that ended or have just come are no difference;
    groups that came are (use it where nobody else makes groups)."""
    lines = []
    for vcpu, had in before.threads.items():
        has = after.threads.get(vcpu, had)
        lines += [
            f"thread {vcpu.tid} of process {vcpu.pid}: {what}: was {had[what]}, is {has[what]}"
            for what in had
            if what in has and has[what] != had[what]
        ]
    for path, holds in after.groups.items():
        if path not in before.groups:
            lines.append(f"group {path}: is new")
            continue
        held = before.groups[path]
        lines += [
            f"group {path}: {what} was {held[what]}, is {value}"
            for what, value in holds.items()
            if what in held and held[what] != value
        ]
    lines += [f"group {path}: is gone" for path in before.groups.keys() - after.groups.keys()]
    return tuple(lines)


def _threads(
    pids: Iterable[int] | None, hierarchy: cgroupfs.Hierarchy | None
) -> Iterator[tuple[VcpuId, Mapping[str, NativeValue]]]:
    for pid in procfs.process_ids() if pids is None else pids:
        for tid in procfs.thread_ids(pid):
            try:
                has = _thread(pid, tid, hierarchy)
                stat = procfs.read_stat(pid, tid)
                if stat.is_kernel_thread:
                    break
                if not stat.has_ended:
                    yield VcpuId(pid, tid, stat.start_ticks), has
            except (ThreadGone, ProcessLookupError):
                continue


def _thread(pid: int, tid: int, hierarchy: cgroupfs.Hierarchy | None) -> Mapping[str, NativeValue]:
    attr = schedattr.get(tid)
    return {
        "slice_ns": attr.slice_ns,
        "nice": attr.nice,
        "policy": attr.policy,
        "affinity": affinity.get(tid),
        "cgroup": hierarchy.group_of(pid, tid) if hierarchy else "",
        **_patched(pid, tid),
    }


def _patched(pid: int, tid: int) -> Mapping[str, NativeValue]:
    """Nothing where the kernel has no file of ours, does not let us read it, or the thread has just ended."""
    try:
        return {key: dasecfile.read_knob(pid, tid, key) for key in (dasecfile.GRANULARITY, dasecfile.WEIGHT)}
    except (ThreadGone, PermissionError):
        return {}


def _groups(hierarchy: cgroupfs.Hierarchy) -> Iterator[tuple[str, Mapping[str, NativeValue]]]:
    for group in hierarchy.below(hierarchy.root, most=sys.maxsize).groups:
        try:
            weight = cgroupfs.read_weight(hierarchy.weight_file(group))
        except ThreadGone:
            continue
        yield hierarchy.directory(group), {"weight": weight, **_limit(hierarchy, group)}


def _limit(hierarchy: cgroupfs.Hierarchy, group: str) -> Mapping[str, NativeValue]:
    """As far as this kernel and this group have one, and the group is still there."""
    found: dict[str, NativeValue] = {}
    file = bandwidth.quota_file(hierarchy, group)
    with suppress(ThreadGone, OSError):
        found["quota"] = bandwidth.read_quota(file)
        found["burst"] = bandwidth.read_burst(bandwidth.burst_file(file))
    return found
