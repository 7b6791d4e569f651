"""What the daemon says of a thread to our BPF scheduler: its word, an entry of a task-storage map.

The map is found by its name, so that no descriptor is kept of one that has gone, and
nothing is pinned that would outlive its loader: with the scheduler its words are gone, and every
thread is as if nobody had said anything. Its key is a pidfd of the thread (PIDFD_THREAD, Linux 6.9:
64bef697d33b), so that a word belongs to a thread and not to a number. A word holds both knobs; 0 is
what nobody has said. Import nothing heavy: the keeper process lives on this module.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache

from . import dasecfile

MAP_NAME = b"dasec_words"
"""As in bpf/scx_dasec.bpf.c."""

DEFAULT = dasecfile.DEFAULT
"""What a knob holds that nobody has set, as with the kernel patch."""

WEIGHT, LATENCY = 0, 1
"""Which number of a word."""

WEIGHT_RANGE = (2, 262_144)
LATENCY_RANGE_NS = (100_000, 100_000_000)
"""As of the kernel's own knobs: cgroup v1's shares, and EEVDF's slices."""

_WORD = struct.Struct("=IxxxxQ")
_NAME_AT = 24
_NAME_BYTES = 16
"""struct bpf_map_info: the name comes behind six numbers of four bytes."""

_INFO_BYTES = 128
_SYSCALL = {"x86_64": 321, "aarch64": 280}.get(platform.machine(), -1)
_MAP_LOOKUP_ELEM, _MAP_UPDATE_ELEM, _MAP_DELETE_ELEM = 1, 2, 3
_MAP_GET_NEXT_ID, _MAP_GET_FD_BY_ID, _OBJ_GET_INFO_BY_FD = 12, 14, 15
_PIDFD_THREAD = os.O_EXCL
_NOT_LOADED = "our sched_ext scheduler is not loaded"

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


class _Identity(ctypes.Structure):
    """union bpf_attr, as BPF_MAP_GET_NEXT_ID and BPF_MAP_GET_FD_BY_ID take it."""

    _fields_ = (("id", ctypes.c_uint32), ("next", ctypes.c_uint32), ("flags", ctypes.c_uint32))


class _Info(ctypes.Structure):
    """union bpf_attr, as BPF_OBJ_GET_INFO_BY_FD takes it."""

    _fields_ = (("descriptor", ctypes.c_uint32), ("length", ctypes.c_uint32), ("info", ctypes.c_uint64))


class Words:
    """The words of the scheduler that is loaded, held open. Raises OSError (ENXIO: none is loaded)."""

    def __init__(self) -> None:
        self._map = _find(MAP_NAME)

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

    def close(self) -> None:
        """Let the map go."""
        os.close(self._map)

    def __enter__(self) -> Words:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def _entry(self, tid: int) -> Iterator[_Element]:
        thread = os.pidfd_open(tid, _PIDFD_THREAD)
        try:
            key = ctypes.c_uint32(thread)
            yield _Element(map=self._map, key=ctypes.addressof(key))
        finally:
            os.close(thread)


def read(tid: int, which: int) -> int | str:
    """One number of a thread's word; DEFAULT also where no scheduler of ours is loaded. Raises OSError."""
    try:
        with Words() as words:
            return words.read(tid, which)
    except OSError as error:
        if error.errno != errno.ENXIO:
            raise
        return DEFAULT


def write(tid: int, which: int, value: int | str) -> None:
    """Set one number of a thread's word, or take it back, which has been done where no scheduler is loaded.
    Raises OSError."""
    try:
        with Words() as words:
            words.write(tid, which, value)
    except OSError as error:
        if error.errno != errno.ENXIO or value != DEFAULT:
            raise


def _look_up(entry: _Element) -> list[int]:
    buffer = ctypes.create_string_buffer(_WORD.size)
    entry.value = ctypes.addressof(buffer)
    try:
        _bpf(_MAP_LOOKUP_ELEM, entry)
    except FileNotFoundError:
        return [0, 0]
    return list(_WORD.unpack(buffer.raw))


def _find(name: bytes) -> int:
    """A descriptor of the map, by the number that it had last time; where that is gone, by looking again."""
    descriptor = _open(_newest(name), name)
    if descriptor is None:
        _newest.cache_clear()
        descriptor = _open(_newest(name), name)
    if descriptor is None:
        raise OSError(errno.ENXIO, _NOT_LOADED)
    return descriptor


@cache
def _newest(name: bytes) -> int:
    """The number of the newest map of that name. There are dozens of maps, and a look takes all of them."""
    found = 0
    for number in _ids():
        descriptor = _open(number, name)
        if descriptor is not None:
            os.close(descriptor)
            found = number
    if not found:
        raise OSError(errno.ENXIO, _NOT_LOADED)
    return found


def _open(number: int, name: bytes) -> int | None:
    """A descriptor of the map with this number, if it has this name."""
    try:
        descriptor = _bpf(_MAP_GET_FD_BY_ID, _Identity(id=number))
    except FileNotFoundError:
        return None  # it went meanwhile
    if _name_of(descriptor) == name:
        return descriptor
    os.close(descriptor)
    return None


def _ids() -> Iterator[int]:
    asked = _Identity()
    with suppress(FileNotFoundError):  # that was the last one
        for _ in range(1 << 20):
            _bpf(_MAP_GET_NEXT_ID, asked)
            yield asked.next
            asked.id = asked.next


def _name_of(descriptor: int) -> bytes:
    buffer = ctypes.create_string_buffer(_INFO_BYTES)
    _bpf(_OBJ_GET_INFO_BY_FD, _Info(descriptor, _INFO_BYTES, ctypes.addressof(buffer)))
    return buffer.raw[_NAME_AT : _NAME_AT + _NAME_BYTES].rstrip(b"\0")


def _bpf(command: int, attributes: ctypes.Structure) -> int:
    done = int(_syscall(_SYSCALL, command, ctypes.byref(attributes), ctypes.sizeof(attributes)))
    if done < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"bpf: {os.strerror(code)}")
    return done
