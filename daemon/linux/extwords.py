"""What the daemon says of a thread to our BPF scheduler: its word, an entry of a task-storage map.

The map is the scheduler's that this process has in the kernel, known from when that begins until it is
closed. Nothing is pinned that would outlive its loader: with the scheduler its words are gone, and every
thread is as if nobody had said anything. So whoever has no scheduler reads each knob as unset. Its key is a
pidfd of the thread (PIDFD_THREAD, Linux 6.9: 64bef697d33b), so that a word belongs to a thread and not to a
number. A word holds both knobs; 0 is what nobody has said. Import nothing heavy: the keeper process lives
on this module.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from . import dasecfile

DEFAULT = dasecfile.DEFAULT
"""What a knob holds that nobody has set, as with the kernel patch."""

WEIGHT, LATENCY = 0, 1
"""Which number of a word."""

WEIGHT_RANGE = (2, 262_144)
LATENCY_RANGE_NS = (100_000, 100_000_000)
"""As of the kernel's own knobs: cgroup v1's shares, and EEVDF's slices."""

_WORD = struct.Struct("=IxxxxQ")
_SYSCALL = {"x86_64": 321, "aarch64": 280}.get(platform.machine(), -1)
_MAP_LOOKUP_ELEM, _MAP_UPDATE_ELEM, _MAP_DELETE_ELEM = 1, 2, 3
_PIDFD_THREAD = os.O_EXCL
_NO_SCHEDULER = "our sched_ext scheduler is not loaded"

_syscall = ctypes.PyDLL(None, use_errno=True).syscall
_syscall.restype = ctypes.c_long


class _Element(ctypes.Structure):
    """union bpf_attr, as BPF_MAP_*_ELEM take it."""

    _fields_ = (
        ("map", ctypes.c_uint32),
        ("key", ctypes.c_uint64),
        ("value", ctypes.c_uint64),
        ("flags", ctypes.c_uint64),
    )


class Words:
    """Of a scheduler in the kernel, by the descriptor of its map, for as long as that is open."""

    def __init__(self, descriptor: int) -> None:
        self._map = descriptor

    def read(self, tid: int, which: int) -> int | str:
        """One number of a thread's word, or DEFAULT. Raises OSError (ESRCH: no such thread)."""
        with self._entry(tid) as entry:
            return _look_up(entry)[which] or DEFAULT

    def write(self, tid: int, which: int, value: int | str) -> None:
        """Set one number of a thread's word, or take it back (DEFAULT). Raises OSError as `read`."""
        with self._entry(tid) as entry:
            numbers = _look_up(entry)
            numbers[which] = value if isinstance(value, int) else 0
            if not any(numbers):
                entry.value = 0  # the kernel takes no argument that a command does not have
                with suppress(FileNotFoundError):  # nobody has ever said anything of it
                    _bpf(_MAP_DELETE_ELEM, entry)
                return
            buffer = ctypes.create_string_buffer(_WORD.pack(*numbers), _WORD.size)
            entry.value = ctypes.addressof(buffer)
            _bpf(_MAP_UPDATE_ELEM, entry)

    @contextmanager
    def _entry(self, tid: int) -> Iterator[_Element]:
        thread = os.pidfd_open(tid, _PIDFD_THREAD)
        try:
            key = ctypes.c_uint32(thread)
            yield _Element(map=self._map, key=ctypes.addressof(key))
        finally:
            os.close(thread)


_ours: Words | None = None


def hold(words: Words) -> None:
    """From now on what this process says of threads is said to that scheduler."""
    global _ours  # noqa: PLW0603  # there is one scheduler, as there is one kernel
    _ours = words


def let_go(words: Words) -> None:
    """Of a scheduler that is about to go. Of another one nothing changes. Idempotent."""
    global _ours  # noqa: PLW0603
    if _ours is words:
        _ours = None


def read(tid: int, which: int) -> int | str:
    """One number of a thread's word; DEFAULT also where this process has no scheduler. Raises OSError."""
    return _ours.read(tid, which) if _ours else DEFAULT


def write(tid: int, which: int, value: int | str) -> None:
    """Set one number of a thread's word, or take it back, which has been done where this process has no
    scheduler. Raises OSError (ENXIO: there is none)."""
    if _ours:
        _ours.write(tid, which, value)
    elif value != DEFAULT:
        raise OSError(errno.ENXIO, _NO_SCHEDULER)


def _look_up(entry: _Element) -> list[int]:
    buffer = ctypes.create_string_buffer(_WORD.size)
    entry.value = ctypes.addressof(buffer)
    try:
        _bpf(_MAP_LOOKUP_ELEM, entry)
    except FileNotFoundError:
        return [0, 0]
    return list(_WORD.unpack(buffer.raw))


def _bpf(command: int, attributes: ctypes.Structure) -> int:
    done = int(_syscall(_SYSCALL, command, ctypes.byref(attributes), ctypes.sizeof(attributes)))
    if done < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"bpf: {os.strerror(code)}")
    return done
