"""CPU masks of threads, of any size: the kernel says how many bytes it wants."""

from __future__ import annotations

import ctypes
import errno
import os
from collections.abc import Iterable

from . import cpulist

_libc = ctypes.CDLL(None, use_errno=True)

_FIRST_BYTES = 128
"""1024 CPUs: what glibc's cpu_set_t holds, and where other tools stop."""


def cpus_of(mask: bytes) -> tuple[int, ...]:
    """The CPUs of a mask as the kernel lays it out (little-endian words of a little-endian machine)."""
    bits = int.from_bytes(mask, "little")
    cpus = []
    while bits:
        low = bits & -bits
        cpus.append(low.bit_length() - 1)
        bits ^= low
    return tuple(cpus)


def mask_of(cpus: Iterable[int], size: int) -> bytes:
    """The mask of these CPUs in at least `size` bytes."""
    bits = 0
    for cpu in cpus:
        bits |= 1 << cpu
    needed = (bits.bit_length() + 63) // 64 * 8
    return bits.to_bytes(max(size, needed), "little")


def kernel_mask_bytes() -> int:
    """How many bytes a mask of this kernel has."""
    size = _FIRST_BYTES
    while True:
        if _libc.sched_getaffinity(0, ctypes.c_size_t(size), ctypes.create_string_buffer(size)) >= 0:
            return size
        code = ctypes.get_errno()
        if code != errno.EINVAL:
            raise OSError(code, f"sched_getaffinity: {os.strerror(code)}")
        size *= 2


KERNEL_BYTES = kernel_mask_bytes()
_fast_getaffinity = ctypes.PyDLL(None).sched_getaffinity
_fast_size = ctypes.c_size_t(KERNEL_BYTES)
_fast_buffer = ctypes.create_string_buffer(KERNEL_BYTES)


def mask(tid: int) -> bytes:
    """The thread's mask as the kernel lays it out, for comparing; empty if there is no such thread."""
    return _fast_buffer.raw if _fast_getaffinity(tid, _fast_size, _fast_buffer) >= 0 else b""


def get(tid: int) -> tuple[int, ...]:
    """The CPUs that the thread may use now, sorted. Raises OSError (ESRCH: no such thread)."""
    buffer = ctypes.create_string_buffer(KERNEL_BYTES)
    if _libc.sched_getaffinity(tid, ctypes.c_size_t(KERNEL_BYTES), buffer) < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"sched_getaffinity: {os.strerror(code)}")
    return cpus_of(buffer.raw)


def put(tid: int, cpus: tuple[int, ...]) -> None:
    """Let the thread use these CPUs only. () means every CPU that its cpuset allows, now and later.

    The kernel keeps the mask that was asked for (since 6.2) and cuts it by the cpuset, so
    a mask of all ones is as good as none, where the present CPUs written out would not be.
    It refuses one of which the cpuset and the CPUs that are online leave nothing (EINVAL).
    """
    wanted = mask_of(cpus, KERNEL_BYTES) if cpus else b"\xff" * KERNEL_BYTES
    if _libc.sched_setaffinity(tid, ctypes.c_size_t(len(wanted)), wanted) < 0:
        code = ctypes.get_errno()
        if code == errno.EINVAL:
            raise OSError(code, f"its cpuset, or what is online, has none of CPU {cpulist.render(cpus)}")
        raise OSError(code, f"sched_setaffinity: {os.strerror(code)}")
