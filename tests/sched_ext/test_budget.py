"""What our programs cost the verifier: a loop that a rule has grown shows here, before it costs wake-ups."""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Iterator
from contextlib import suppress

from dasec.bpf.scx import Scheduler, options

from .machine import NEEDS_SCHED_EXT, wait_for

pytestmark = NEEDS_SCHED_EXT

MOST_VERIFIED = 50_000
"""Instructions that the verifier walks through in one program: half as much again as the largest (33004)."""

SYS_BPF = {"x86_64": 321, "aarch64": 280}[os.uname().machine]
PROG_GET_NEXT_ID, PROG_GET_FD_BY_ID, OBJ_GET_INFO_BY_FD = 11, 13, 15
NAME_AT, VERIFIED_AT, INFO_BYTES = 64, 216, 256
"""In struct bpf_prog_info (verified_insns: Linux 5.16, aba64c7da983)."""

LIBC = ctypes.CDLL(None, use_errno=True)


def bpf(command: int, attributes: ctypes.Array[ctypes.c_char]) -> int:
    done = int(LIBC.syscall(SYS_BPF, command, attributes, len(attributes)))
    if done < 0:
        raise OSError(ctypes.get_errno(), "bpf")
    return done


def programs() -> Iterator[tuple[str, int]]:
    """Name and verified instructions of every BPF program that is loaded."""
    number = 0
    with suppress(FileNotFoundError):
        while True:
            asked = ctypes.create_string_buffer(struct.pack("=III", number, 0, 0), 12)
            bpf(PROG_GET_NEXT_ID, asked)
            (number,) = struct.unpack_from("=I", asked, 4)
            descriptor = bpf(PROG_GET_FD_BY_ID, ctypes.create_string_buffer(struct.pack("=I", number), 12))
            info = ctypes.create_string_buffer(INFO_BYTES)
            where = struct.pack("=IIQ", descriptor, INFO_BYTES, ctypes.addressof(info))
            bpf(OBJ_GET_INFO_BY_FD, ctypes.create_string_buffer(where, 16))
            os.close(descriptor)
            name = info.raw[NAME_AT : NAME_AT + 16].rstrip(b"\0").decode()
            yield name, struct.unpack_from("=I", info, VERIFIED_AT)[0]


def test_no_program_is_more_work_for_the_verifier_than_its_budget() -> None:
    with Scheduler(options(2)):
        verified = {name: count for name, count in programs() if name.startswith("dasec_")}
    wait_for("disabled")
    assert {"dasec_enqueue", "dasec_dispatch", "dasec_running"} <= verified.keys()
    assert all(0 < count < MOST_VERIFIED for count in verified.values()), verified
