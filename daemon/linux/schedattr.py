"""sched_getattr(2) and sched_setattr(2), which the C library of Debian 12 does not wrap.

On EEVDF the slice of a fair thread travels in `sched_runtime` (since 6.12, commit
857b158dc5e8); 0 asks for the kernel's default. Older kernels ignore it and read 0.

The structures are made once and used again: making one costs as much as the call. So these
functions are for one thread of ours at a time.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import threading
from typing import NamedTuple

from .errors import NotFair

SCHED_OTHER, SCHED_FIFO, SCHED_RR, SCHED_BATCH, SCHED_IDLE, SCHED_DEADLINE, SCHED_EXT = 0, 1, 2, 3, 5, 6, 7
FAIR_POLICIES = frozenset({SCHED_OTHER, SCHED_BATCH})
_KEEPS_NICE_AND_SLICE = FAIR_POLICIES | {SCHED_EXT}
_SHOW_NO_SLICE = frozenset({SCHED_FIFO, SCHED_RR, SCHED_DEADLINE})

_FLAG_RESET_ON_FORK, _FLAG_KEEP_POLICY = 0x01, 0x08

_SET, _GET = {"x86_64": (314, 315), "aarch64": (274, 275)}.get(platform.machine(), (-1, -1))
"""System call numbers. The kernel answers -1 with ENOSYS."""


class _Layout(ctypes.Structure):
    """struct sched_attr of include/uapi/linux/sched/types.h, version 2 (56 bytes)."""

    _fields_ = (
        ("size", ctypes.c_uint32),
        ("policy", ctypes.c_uint32),
        ("flags", ctypes.c_uint64),
        ("nice", ctypes.c_int32),
        ("priority", ctypes.c_uint32),
        ("runtime", ctypes.c_uint64),
        ("deadline", ctypes.c_uint64),
        ("period", ctypes.c_uint64),
        ("util_min", ctypes.c_uint32),
        ("util_max", ctypes.c_uint32),
    )


_BYTES = ctypes.sizeof(_Layout)
_syscall = ctypes.PyDLL(None, use_errno=True).syscall
_syscall.restype = ctypes.c_long
_found = _Layout()
_found_address = ctypes.byref(_found)
_wanted = _Layout(size=_BYTES, flags=_FLAG_KEEP_POLICY)
_wanted_address = ctypes.byref(_wanted)


class SchedAttr(NamedTuple):
    """What we use of a thread's scheduling attributes."""

    policy: int
    nice: int
    slice_ns: int


def get(tid: int) -> SchedAttr:
    """The thread's attributes now. Raises OSError (ESRCH: no such thread)."""
    if _syscall(_GET, tid, _found_address, _BYTES, 0) < 0:
        raise _error("sched_getattr")
    return SchedAttr(_found.policy, _found.nice, _found.runtime)


def policy_of(tid: int) -> int:
    """The thread's policy: `get` without the rest. Raises OSError."""
    if _syscall(_GET, tid, _found_address, _BYTES, 0) < 0:
        raise _error("sched_getattr")
    return int(_found.policy)


def slice_of(tid: int) -> int:
    """The thread's slice, for comparing. 0 if there is no such thread."""
    if _syscall(_GET, tid, _found_address, _BYTES, 0) < 0:
        return 0
    return int(_found.runtime)


def shown_slice(tid: int) -> int:
    """The thread's slice. Raises NotFair where the kernel does not show it, or OSError (ESRCH)."""
    found = get(tid)
    if found.policy in _SHOW_NO_SLICE:
        raise _not_fair(tid)
    return found.slice_ns


def set_slice(tid: int, slice_ns: int) -> None:
    """Ask for a slice; 0 is the kernel's default. Policy, nice, reset-on-fork and uclamp stay as they are.

    KEEP_POLICY makes the kernel keep policy and reset-on-fork, and refuse (EINVAL) a thread
    that has turned real-time since; without the clamp flags it leaves user-set clamps alone.
    Nice has no such flag for fair threads and is passed again.
    """
    if policy_of(tid) not in FAIR_POLICIES:
        raise _not_fair(tid)
    _wanted.nice = _found.nice
    _wanted.runtime = slice_ns
    if _syscall(_SET, tid, _wanted_address, 0) < 0:
        raise _error("sched_setattr")


def nice_of(tid: int) -> int:
    """The thread's nice value, whatever its policy is. Raises OSError (ESRCH: no such thread)."""
    return os.getpriority(os.PRIO_PROCESS, tid)


def set_nice(tid: int, nice: int) -> None:
    """Of this thread alone, whatever POSIX says. Raises OSError."""
    os.setpriority(os.PRIO_PROCESS, tid, nice)


def give_slice_back(tid: int, slice_ns: int) -> None:
    """`set_slice` also for SCHED_IDLE, whose slice the kernel keeps but takes from nobody: such a thread is
    an ordinary one between two calls (docs/decisions/0034-custody.md). Raises NotFair, or OSError."""
    if policy_of(tid) != SCHED_IDLE:
        set_slice(tid, slice_ns)
        return
    put(tid, SCHED_OTHER, slice_ns)
    if policy_of(tid) == SCHED_OTHER:
        put(tid, SCHED_IDLE, 0)


def put(tid: int, policy: int, slice_ns: int) -> None:
    """Give a thread a fair policy and a slice; nice and reset-on-fork stay. Raises OSError."""
    nice = get(tid).nice
    kept = _found.flags & _FLAG_RESET_ON_FORK
    wanted = _Layout(size=_BYTES, policy=policy, flags=kept, nice=nice, runtime=slice_ns)
    if _syscall(_SET, tid, ctypes.byref(wanted), 0) < 0:
        raise _error("sched_setattr")


def change_policy(tid: int, policy: int, default_slice_ns: int) -> None:
    """Another policy, between fair ones and SCHED_EXT. Nice, reset-on-fork and a slice that it has asked for
    stay; one that never asked still has the kernel's default. Raises NotFair, or OSError."""
    found = get(tid)
    if found.policy not in _KEEPS_NICE_AND_SLICE:
        raise _not_fair(tid)
    put(tid, policy, 0 if found.slice_ns == default_slice_ns else found.slice_ns)


def default_slice_ns() -> int:
    """The slice of a thread that never asked for one; found on a thread made for it."""
    found: list[int] = []

    def ask() -> None:
        own = threading.get_native_id()
        try:
            set_slice(own, 0)
            found.append(get(own).slice_ns)
        except OSError:
            found.append(0)

    thread = threading.Thread(target=ask)
    thread.start()
    thread.join()
    return found[0]


def _not_fair(tid: int) -> NotFair:
    return NotFair(errno.EPERM, f"thread {tid} is not in a fair scheduling class any more")


def _error(call: str) -> OSError:
    code = ctypes.get_errno()
    return OSError(code, f"{call}: {os.strerror(code)}")
