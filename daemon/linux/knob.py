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
from . import affinity, cgroupfs, cpus, dasecfile, procfs, schedattr
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


DASEC_KEYS = {
    NativeKnob.GRANULARITY: dasecfile.GRANULARITY,
    NativeKnob.THREAD_WEIGHT: dasecfile.WEIGHT,
}
"""What the kernel patch calls them."""


UNSET: Mapping[NativeKnob, NativeValue] = {NativeKnob.SLICE: 0, NativeKnob.AFFINITY: ()}
"""What is written to a knob so that it is as if nobody had ever set it."""


class KnobRef(NamedTuple):
    """Which knob of which thread. `path`: the weight file (WEIGHT_*), the hierarchy's mount
    point (CGROUP), the subtree_control file (CONTROLLERS), else empty."""

    vcpu: VcpuId
    kind: NativeKnob
    path: str = ""


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


def holds(ref: KnobRef, value: NativeValue, proc: str = procfs.PROC) -> bool:
    """Does the kernel still hold what we wrote? CPUs that went offline since do not count.

    Raises ThreadGone, or OSError.
    """
    present = read(ref, proc)
    if present == value:
        return True
    if isinstance(value, tuple):
        return present == tuple(cpu for cpu in value if cpu in cpus.online())
    return False


def read_known(ref: KnobRef, proc: str = procfs.PROC) -> NativeValue:
    """`read` for a caller who has just proved the identity through a kept descriptor."""
    try:
        match ref.kind:
            case NativeKnob.WEIGHT_V1 | NativeKnob.WEIGHT_V2:
                return cgroupfs.read_weight(ref.path)
            case NativeKnob.SLICE:
                return schedattr.get(ref.vcpu.tid).slice_ns
            case NativeKnob.AFFINITY:
                return affinity.get(ref.vcpu.tid)
            case NativeKnob.CGROUP:
                return _hierarchy(ref, proc).group_of(ref.vcpu.pid, ref.vcpu.tid, proc)
            case NativeKnob.CONTROLLERS:
                return "cpu" if cgroupfs.hands_on_cpu(ref.path) else ""
            case NativeKnob.GRANULARITY | NativeKnob.THREAD_WEIGHT:
                return dasecfile.read_knob(*ref.vcpu[:2], DASEC_KEYS[ref.kind], proc)
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
                cgroupfs.write_weight(ref.path, value, descriptor)
            case NativeKnob.SLICE, int():
                schedattr.set_slice(ref.vcpu.tid, value)
            case NativeKnob.AFFINITY, tuple():
                affinity.put(ref.vcpu.tid, value)
            case NativeKnob.CGROUP, str():
                _hierarchy(ref, proc).move(ref.vcpu.tid, value)
            case NativeKnob.CONTROLLERS, str():
                cgroupfs.hand_on_cpu(ref.path, on=value == "cpu")
            case ((NativeKnob.GRANULARITY | NativeKnob.THREAD_WEIGHT), int() | dasecfile.DEFAULT):
                dasecfile.write_knob(*ref.vcpu[:2], DASEC_KEYS[ref.kind], value, proc)
            case _:
                raise OSError(errno.EINVAL, f"{value!r} is no value for {ref.kind}")
    except OSError as error:
        raise _gone_or(error, ref) from error


def unset(ref: KnobRef, proc: str = procfs.PROC) -> NativeValue:
    """What a slice or a mask reads as while nobody has set it. Raises ThreadGone, or OSError."""
    if ref.kind is NativeKnob.SLICE:
        return default_slice_ns()
    online = cpus.online()
    allowed = cgroupfs.cpuset_of(ref.vcpu.pid, ref.vcpu.tid, proc) or online
    return tuple(sorted(allowed & online))


def prior_of(ref: KnobRef, found: NativeValue, proc: str = procfs.PROC) -> NativeValue:
    """What to put back where `found` was there before us. A default slice and a mask that is all its
    cpuset allows were never set: they go back to that. Raises ThreadGone, or OSError."""
    nothing = UNSET.get(ref.kind)
    return found if nothing is None or found != unset(ref, proc) else nothing


@cache
def default_slice_ns() -> int:
    """The kernel's default slice, asked for once."""
    return schedattr.default_slice_ns()


def _check(ref: KnobRef, proc: str) -> None:
    if ref.kind is NativeKnob.CONTROLLERS:
        return
    if not alive(ref.vcpu, proc):
        raise ThreadGone(f"thread {ref.vcpu.tid} of process {ref.vcpu.pid} ended")


def _hierarchy(ref: KnobRef, proc: str) -> cgroupfs.Hierarchy:
    try:
        return cgroupfs.hierarchy_at(ref.path, proc)
    except HierarchyMissing as error:
        raise OSError(errno.ENODEV, str(error)) from error


def _gone_or(error: OSError, ref: KnobRef) -> Exception:
    """ThreadGone where the error means that; else the error itself, naming the file if there is one."""
    if error.errno in _GONE:
        return ThreadGone(f"{ref.kind} of thread {ref.vcpu.tid}: {os.strerror(error.errno or 0)}")
    return error
