"""One knob of one thread, in the kernel's own units: read it, write it.

The only place that writes a knob: the host, the keeper and `dasec restore` all come
through here, so that all of them mean the same thing by "prior" and "ours".
Import nothing heavy: the keeper process lives on this module.

The identity check and the write are two steps. Between them the thread could end and its
id be given out again only if the kernel handed out every other id in those microseconds.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping
from enum import StrEnum
from functools import cache
from typing import NamedTuple

from ..model import VcpuId
from . import affinity, bandwidth, cgroupfs, cpus, dasecfile, extwords, procfs, schedattr
from .errors import HierarchyMissing, ThreadGone

NativeValue = int | str | tuple[int, ...]
"""What a knob holds, JSON-plain (a tuple comes back from JSON as a list: make it a tuple again)."""

_GONE = {errno.ESRCH, errno.ENOENT, errno.ENODEV}


class NativeKnob(StrEnum):
    """The kernel's knobs, each with its own unit.

    CONTROLLERS belongs to a v2 group, not to a thread: "cpu" where the group's
    subtree_control hands the cpu controller on, else "". It is put back last, after the
    cgroup moves, and whether or not the thread that needed it still lives.

    GRANULARITY and THREAD_WEIGHT exist with our kernel patch. Both hold a number or
    `dasecfile.DEFAULT`, a value of its own. A child is born with the default.

    EXT_WEIGHT and EXT_LATENCY are like those two, and exist while our sched_ext scheduler is loaded
    (extwords.py).

    QUOTA is that of the group that a thread is alone in, with its period: "16000 10000", "max 100000".
    """

    __hash__ = str.__hash__  # an enum's own is Python code, and a write looks up a dozen of these

    WEIGHT_V1 = "weight_v1"
    WEIGHT_V2 = "weight_v2"
    SLICE = "slice"
    AFFINITY = "affinity"
    CGROUP = "cgroup"
    CONTROLLERS = "controllers"
    GRANULARITY = "granularity"
    THREAD_WEIGHT = "thread_weight"
    QUOTA = "quota"
    EXT_WEIGHT = "ext_weight"
    EXT_LATENCY = "ext_latency"


DASEC_KEYS = {
    NativeKnob.GRANULARITY: dasecfile.GRANULARITY,
    NativeKnob.THREAD_WEIGHT: dasecfile.WEIGHT,
}
"""What the kernel patch calls them."""

EXT_NUMBERS = {NativeKnob.EXT_WEIGHT: extwords.WEIGHT, NativeKnob.EXT_LATENCY: extwords.LATENCY}
"""Which number of a thread's word they are."""


UNSET: Mapping[NativeKnob, NativeValue] = {NativeKnob.SLICE: 0, NativeKnob.AFFINITY: ()}
"""What is written to a knob so that it is as if nobody had ever set it."""

_LOOKS = 3
"""At a mask that reads differently each time."""


class KnobRef(NamedTuple):
    """Which knob of which thread. `path`: the weight file (WEIGHT_*), that with the quota (QUOTA), the
    hierarchy's mount point (CGROUP), the subtree_control file (CONTROLLERS), else empty. `inode`: of the
    group's directory, for knobs of a group; one that is removed and made again under its name gets another.
    0: not known, as in older journals."""

    vcpu: VcpuId
    kind: NativeKnob
    path: str = ""
    inode: int = 0


class Write(NamedTuple):
    """One intended write: the value found before our first write, and the value to be written now."""

    ref: KnobRef
    prior: NativeValue
    new: NativeValue


def alive(vcpu: VcpuId, proc: str = procfs.PROC) -> bool:
    """Is this still the thread that we met?"""
    try:
        return procfs.read_stat(vcpu.pid, vcpu.tid, proc).start_ticks == vcpu.start_ticks
    except ThreadGone:
        return False


def read(ref: KnobRef, proc: str = procfs.PROC) -> NativeValue:
    """The knob's present value. Raises ThreadGone, or OSError."""
    _check(ref, proc)
    return read_known(ref, proc)


def write(ref: KnobRef, value: NativeValue, proc: str = procfs.PROC) -> None:
    """Set the knob. Raises ThreadGone, or OSError when the kernel refuses.

    SLICE 0 is the kernel's default again; AFFINITY () is no mask of its own again.
    """
    _check(ref, proc)
    write_known(ref, value, proc)


def put_back(ref: KnobRef, prior: NativeValue, proc: str = procfs.PROC) -> None:
    """`write` of what was there before us, which a thread that has turned idle gets, too.

    Raises ThreadGone, NotFair, or OSError.
    """
    if ref.kind is not NativeKnob.SLICE or not isinstance(prior, int):
        write(ref, prior, proc)
        return
    _check(ref, proc)
    try:
        schedattr.give_slice_back(ref.vcpu.tid, prior)
    except OSError as error:
        raise _gone_or(error, ref) from error


def read_known(ref: KnobRef, proc: str = procfs.PROC) -> NativeValue:
    """`read` for a caller who has just proved the identity through a kept descriptor."""
    try:
        match ref.kind:
            case NativeKnob.WEIGHT_V1 | NativeKnob.WEIGHT_V2:
                _same_group(ref)
                return cgroupfs.read_weight(ref.path)
            case NativeKnob.SLICE:
                return schedattr.shown_slice(ref.vcpu.tid)
            case NativeKnob.AFFINITY:
                return affinity.get(ref.vcpu.tid) or _offline_mask(ref, proc)
            case NativeKnob.CGROUP:
                return _group_of(ref, proc)
            case NativeKnob.CONTROLLERS:
                _same_group(ref)
                return "cpu" if cgroupfs.hands_on_cpu(ref.path) else ""
            case NativeKnob.QUOTA:
                _same_group(ref)
                return bandwidth.read_quota(ref.path)
            case NativeKnob.GRANULARITY | NativeKnob.THREAD_WEIGHT:
                return dasecfile.read_knob(*ref.vcpu[:2], DASEC_KEYS[ref.kind], proc)
            case NativeKnob.EXT_WEIGHT | NativeKnob.EXT_LATENCY:
                return extwords.read(ref.vcpu.tid, EXT_NUMBERS[ref.kind])
    except OSError as error:
        raise _gone_or(error, ref) from error


def write_known(
    ref: KnobRef, value: NativeValue, proc: str = procfs.PROC, descriptor: int | None = None
) -> None:
    """`write` for a caller who has just proved the identity through a kept descriptor.

    `descriptor`: the weight file, kept open, for WEIGHT_*.
    """
    try:
        match ref.kind, value:
            case ((NativeKnob.WEIGHT_V1 | NativeKnob.WEIGHT_V2), int()):
                if descriptor is None:
                    _same_group(ref)
                cgroupfs.write_weight(ref.path, value, descriptor)
            case NativeKnob.SLICE, int():
                schedattr.set_slice(ref.vcpu.tid, value)
            case NativeKnob.AFFINITY, tuple():
                affinity.put(ref.vcpu.tid, value)
            case NativeKnob.CGROUP, str():
                _hierarchy(ref, proc).move(ref.vcpu.tid, value)
            case NativeKnob.CONTROLLERS, str():
                _same_group(ref)
                cgroupfs.hand_on_cpu(ref.path, on=value == "cpu")
            case NativeKnob.QUOTA, str():
                _same_group(ref)
                bandwidth.write_quota(ref.path, value)
            case ((NativeKnob.GRANULARITY | NativeKnob.THREAD_WEIGHT), int() | dasecfile.DEFAULT):
                dasecfile.write_knob(*ref.vcpu[:2], DASEC_KEYS[ref.kind], value, proc)
            case ((NativeKnob.EXT_WEIGHT | NativeKnob.EXT_LATENCY), int() | extwords.DEFAULT):
                extwords.write(ref.vcpu.tid, EXT_NUMBERS[ref.kind], value)
            case _:
                raise OSError(errno.EINVAL, f"{value!r} is no value for {ref.kind}")
    except OSError as error:
        raise _gone_or(error, ref) from error


def in_force(ref: KnobRef, value: NativeValue, proc: str = procfs.PROC) -> NativeValue:
    """What the knob reads as while `value` is what was last asked for. Raises ThreadGone, or OSError.

    A slice of 0 is the kernel's default. A mask is cut by the cpuset and by CPUs that are offline. The kernel
    keeps what was asked for and cuts it anew each time that they change (user_cpus_ptr, since 6.2:
    8f9ea86fdf99). Before 6.2 each such change makes the mask the whole cpuset, whoever had set it.
    """
    if ref.kind is NativeKnob.SLICE:
        return default_slice_ns() if value == UNSET[ref.kind] else value
    if not isinstance(value, tuple):
        return value
    return cut(value, allowed_now(ref, proc))


def allowed_now(ref: KnobRef, proc: str = procfs.PROC) -> frozenset[int]:
    """The CPUs that the thread's cpuset allows and that are online. Raises ThreadGone, or OSError."""
    online = cpus.online()
    return (cgroupfs.cpuset_of(ref.vcpu.pid, ref.vcpu.tid, proc).cpus or online) & online


def cut(mask: tuple[int, ...], allowed: frozenset[int]) -> tuple[int, ...]:
    """What is in force of a mask: what these CPUs leave of it, or all of them where that is nothing."""
    return tuple(sorted(allowed.intersection(mask) or allowed))


def may_be_cut(value: NativeValue, present: NativeValue) -> bool:
    """Could a cpuset or offline CPUs make this mask read so? They leave a part of it, or nothing of it and
    something else. Spares the reading of cpusets where the answer is no."""
    if not isinstance(value, tuple) or not isinstance(present, tuple) or value == present:
        return False
    common = len(set(value) & set(present))
    return common in (0, len(present))


def prior_of(ref: KnobRef, found: NativeValue, proc: str = procfs.PROC) -> NativeValue:
    """What to put back where `found` was there before us. A default slice and a mask that is all its
    cpuset allows were never set: they go back to that. A mask keeps CPUs that are offline now.

    What was asked for before a cpuset cut it, nothing tells. Raises ThreadGone, or OSError.
    """
    if ref.kind is NativeKnob.AFFINITY:
        return _prior_mask(ref, proc)
    nothing = UNSET.get(ref.kind)
    return found if nothing is None or found != in_force(ref, nothing, proc) else nothing


def _prior_mask(ref: KnobRef, proc: str) -> tuple[int, ...]:
    """The cpuset may change between our look at the mask and at the cpuset: then we look again."""
    whole = procfs.cpus_allowed(ref.vcpu.pid, ref.vcpu.tid, proc)
    for _ in range(_LOOKS):
        if whole == _never_set(ref, proc):
            return ()
        before, whole = whole, procfs.cpus_allowed(ref.vcpu.pid, ref.vcpu.tid, proc)
        if whole == before:
            break
    return tuple(sorted(whole))


def _offline_mask(ref: KnobRef, proc: str) -> tuple[int, ...]:
    """The mask of a thread that sleeps while all its CPUs are offline. It keeps them until it wakes up."""
    return tuple(sorted(procfs.cpus_allowed(ref.vcpu.pid, ref.vcpu.tid, proc)))


def _never_set(ref: KnobRef, proc: str) -> frozenset[int]:
    """The mask, with CPUs that are offline, of a thread there that nobody ever gave one. Only in the top
    cpuset is it left as it is when CPUs go (cpuset_cpus_allowed())."""
    cpuset = cgroupfs.cpuset_of(ref.vcpu.pid, ref.vcpu.tid, proc)
    online = cpus.online()
    offline = cpus.possible() - online if cpuset.is_top else frozenset[int]()
    return (cpuset.cpus or online) | offline


@cache
def default_slice_ns() -> int:
    """The kernel's default slice, asked for once."""
    return schedattr.default_slice_ns()


def _check(ref: KnobRef, proc: str) -> None:
    if ref.kind is NativeKnob.CONTROLLERS:
        return
    if not alive(ref.vcpu, proc):
        raise ThreadGone(f"thread {ref.vcpu.tid} of process {ref.vcpu.pid} ended")


def _same_group(ref: KnobRef) -> None:
    if ref.inode and cgroupfs.inode_of(ref.path) != ref.inode:
        raise ThreadGone(f"the group of {ref.path} was removed; one of its name was made since")


def _hierarchy(ref: KnobRef, proc: str) -> cgroupfs.Hierarchy:
    try:
        return cgroupfs.hierarchy_at(ref.path, proc)
    except HierarchyMissing as error:
        raise OSError(errno.ENODEV, str(error)) from error


def _group_of(ref: KnobRef, proc: str) -> str:
    """Where the thread is. A group whose path is longer than the kernel writes is none of ours."""
    try:
        return _hierarchy(ref, proc).group_of(ref.vcpu.pid, ref.vcpu.tid, proc)
    except OSError as error:
        if error.errno != errno.ENAMETOOLONG:
            raise
        return "a group that is nested too deep to be named"


def _gone_or(error: OSError, ref: KnobRef) -> Exception:
    """ThreadGone where the error means that; else the error itself, naming the file if there is one."""
    if error.errno in _GONE:
        return ThreadGone(f"{ref.kind} of thread {ref.vcpu.tid}: {os.strerror(error.errno or 0)}")
    return error
