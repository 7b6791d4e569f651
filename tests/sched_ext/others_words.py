"""What another process has said of threads to our scheduler: its map, found by name among all that there are.

That takes CAP_SYS_ADMIN, which the service does not have.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager

from dasec.linux import extwords, procfs

MAP_GET_NEXT_ID, MAP_GET_FD_BY_ID, OBJ_GET_INFO_BY_FD = 12, 14, 15
BPF = 321
"""The number of the system call on x86-64, as the guests are."""

NAME, NAME_AT, INFO_BYTES = b"dasec_words", 24, 128
"""struct bpf_map_info: the name comes behind six numbers of four bytes."""


def bpf(command: int, attributes: ctypes.Structure) -> int:
    done = ctypes.CDLL(None, use_errno=True).syscall(
        BPF, command, ctypes.byref(attributes), ctypes.sizeof(attributes)
    )
    if done < 0:
        raise OSError(ctypes.get_errno(), "bpf")
    return int(done)


class Identity(ctypes.Structure):
    """union bpf_attr, as the first two commands take it."""

    _fields_ = (("id", ctypes.c_uint32), ("next", ctypes.c_uint32), ("flags", ctypes.c_uint32))


class Info(ctypes.Structure):
    """union bpf_attr, as the third one takes it."""

    _fields_ = (("descriptor", ctypes.c_uint32), ("length", ctypes.c_uint32), ("info", ctypes.c_uint64))


def numbers() -> Iterator[int]:
    """Of all maps."""
    asked = Identity()
    try:
        while True:
            bpf(MAP_GET_NEXT_ID, asked)
            yield asked.next
            asked.id = asked.next
    except FileNotFoundError:  # that was the last one
        return


@contextmanager
def opened(number: int) -> Iterator[int | None]:
    """A descriptor of this map, if it holds words."""
    try:
        descriptor = bpf(MAP_GET_FD_BY_ID, Identity(id=number))
    except FileNotFoundError:  # it went meanwhile
        yield None
        return
    buffer = ctypes.create_string_buffer(INFO_BYTES)
    bpf(OBJ_GET_INFO_BY_FD, Info(descriptor, INFO_BYTES, ctypes.addressof(buffer)))
    yield descriptor if buffer.raw[NAME_AT:].startswith(NAME + b"\0") else None
    os.close(descriptor)


def has_word(pid: int) -> bool:
    """Whether anything has been said of any of its threads."""
    for number in numbers():
        with opened(number) as descriptor:
            if descriptor is None:
                continue
            words = extwords.Words(descriptor)
            said = (words.read(tid, which) for tid in procfs.thread_ids(pid) for which in (0, 1))
            if any(word != extwords.DEFAULT for word in said):
                return True
    return False
