"""What DASEC's own modules find in the place of `os`, `time` and the calls that are no files.

daemon/linux, daemon/safety and the mainline host read /proc and cgroup v1, keep descriptors and write knobs
as on a host; here their calls reach the machine of the model (files.py has those that are files).
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from dasec.hosts.mainline import sample
from dasec.hosts.threads import act, cores, foreign, host, limits, put_back, share_watch, weight_watch
from dasec.knobs import knob, slices, weights
from dasec.linux import affinity, cgroupfs, cpus, procfs, schedattr
from dasec.linux.errors import NotFair
from dasec.safety import groups, keeping, kernel
from dasec.safety.journal import journal

from .files import Os, machine
from .machine import DEFAULT_SLICE_NS, OTHER, RT, Step, Task

_TICK_NS = 1_000_000_000 // os.sysconf("SC_CLK_TCK")


class Time:
    """The module `time`. Only pauses pass."""

    CLOCK_BOOTTIME = 7

    @staticmethod
    def sleep(seconds: float) -> None:
        machine().step(Step("births"))
        machine().pause()

    @staticmethod
    def clock_gettime_ns(clock: int) -> int:
        return machine().now() * _TICK_NS

    @staticmethod
    def monotonic_ns() -> int:
        return 0

    @staticmethod
    def monotonic() -> float:
        return 0.0


class Watch:
    """linux.watch.FileWatch where inotify has run out: every file is read each time."""

    complete = False

    def add(self, path: str) -> None:
        """Not watched."""

    drop = add

    def written(self) -> frozenset[str]:
        return frozenset()

    def close(self) -> None:
        """Nothing was opened."""


def _slice_seen(task: Task) -> int:
    """What sched_getattr(2) says: of a real-time thread nothing, though its slice is kept."""
    return 0 if task.policy == RT else task.slice_ns or DEFAULT_SLICE_NS


def _get_attr(tid: int) -> schedattr.SchedAttr:
    task = machine().read(tid, "slice")
    return schedattr.SchedAttr(task.policy, 0, _slice_seen(task))


def _policy_of(tid: int) -> int:
    machine().step(Step(f"class {tid}"))
    return machine().task_of(tid).policy


def _slice_of(tid: int) -> int:
    try:
        return _get_attr(tid).slice_ns
    except OSError:
        return 0


def _set_slice(tid: int, slice_ns: int) -> None:
    if _policy_of(tid) != OTHER:
        raise NotFair(errno.EPERM, f"thread {tid} is not in a fair scheduling class any more")
    task = machine().write(tid, "slice", slice_ns)
    if task.policy == RT:  # since we asked
        raise OSError(errno.EINVAL, "Invalid argument")
    if task.policy == OTHER:
        task.slice_ns = slice_ns


def _put(tid: int, policy: int, slice_ns: int) -> None:
    """The kernel keeps the slice of a thread that is not fair, and takes none for it."""
    task = machine().write(tid, "slice", f"{slice_ns} with class {policy}")
    task.policy = policy
    if policy == OTHER:
        task.slice_ns = slice_ns


def _raw(*_: object) -> None:
    raise NotImplementedError("the model has no such system call")


def _get_mask(tid: int) -> tuple[int, ...]:
    return machine().effective(machine().read(tid, "mask").mask)


def _mask(tid: int) -> bytes:
    try:
        return affinity.mask_of(_get_mask(tid), affinity.KERNEL_BYTES)
    except OSError:
        return b""


def _put_mask(tid: int, wanted: tuple[int, ...]) -> None:
    task = machine().write(tid, "mask", wanted)
    if wanted and not set(wanted) & set(machine().cpuset):
        raise OSError(errno.EINVAL, "Invalid argument")
    task.mask = wanted or None


_REPLACED: tuple[tuple[Any, str, object], ...] = (
    (schedattr, "get", _get_attr),
    (schedattr, "policy_of", _policy_of),
    (schedattr, "slice_of", _slice_of),
    (schedattr, "set_slice", _set_slice),
    (schedattr, "put", _put),
    (schedattr, "nice_of", lambda tid: 0),  # a slice stands for all that a thread is born with
    (schedattr, "set_nice", _raw),
    (schedattr, "_syscall", _raw),
    (affinity, "_libc", None),
    (affinity, "_fast_getaffinity", _raw),
    (slices, "default_slice_ns", lambda: DEFAULT_SLICE_NS),
    (affinity, "get", _get_mask),
    (affinity, "mask", _mask),
    (affinity, "put", _put_mask),
    (host, "raise_open_files", lambda: 0),
    (limits, "FileWatch", Watch),
    (weight_watch, "FileWatch", Watch),
    (share_watch, "FileWatch", Watch),
    (cpus, "node_of", lambda sysfs: {}),
    (cpus, "cores_of", lambda sysfs: {}),
    (cpus, "capacity_of", lambda sysfs: {}),
    (foreign, "_CPUSET_CHANGES_WITHIN_S", 0.0),
    (keeping, "_say", lambda text: None),
)
_ASK_OS = (act, cores, foreign, put_back, sample, cgroupfs, cpus, knob, weights, procfs, groups, journal)
_ASK_TIME = (host, groups, journal, keeping, kernel)


@contextmanager
def in_place() -> Iterator[None]:
    """While this lasts, DASEC's modules speak to the model and to nothing else."""
    model_os, model_time = Os(), Time()
    with_all = [
        *((module, name, new) for module, name, new in _REPLACED),
        *((module, "os", model_os) for module in _ASK_OS),
        *((module, "time", model_time) for module in _ASK_TIME),
    ]
    with pytest.MonkeyPatch.context() as patches:
        for module, name, new in with_all:
            patches.setattr(module, name, new)
        yield
