"""Knobs by number, so that tests can speak of them shortly."""

from __future__ import annotations

from pathlib import Path

from dasec.knobs.groups import CGROUP
from dasec.knobs.knob import GroupId, KnobRef, NativeValue
from dasec.knobs.masks import AFFINITY
from dasec.knobs.slices import SLICE
from dasec.knobs.weights import WEIGHT_V1
from dasec.model import VcpuId
from dasec.safety.journal.journal import Journal, Notice


def thread(tid: int, pid: int = 100, start_ticks: int = 50) -> VcpuId:
    return VcpuId(pid, tid, start_ticks)


def slice_of(tid: int, pid: int = 100) -> KnobRef:
    return KnobRef(thread(tid, pid), SLICE)


def mask_of(tid: int, pid: int = 100) -> KnobRef:
    return KnobRef(thread(tid, pid), AFFINITY)


def group_of(tid: int, pid: int = 100) -> KnobRef:
    return KnobRef(thread(tid, pid), CGROUP, "/cg")


def weight_of(tid: int, group: str = "/vm/vcpu0", pid: int = 100) -> KnobRef:
    return KnobRef(GroupId(f"/cg{group}", 0, thread(tid, pid)), WEIGHT_V1, "cpu.shares")


def open_journal(directory: Path) -> Journal:
    journal, notices = Journal.open(directory, wait_s=0.0)
    assert notices == ()
    return journal


def reopen(journal: Journal, directory: Path) -> tuple[Journal, tuple[Notice, ...]]:
    """As after a crash: nothing but the file is left."""
    journal.close()
    return Journal.open(directory, wait_s=0.0)


def held(journal: Journal) -> dict[KnobRef, tuple[NativeValue, tuple[NativeValue, ...]]]:
    return {one.ref: (one.prior, one.ours) for one in journal.outstanding()}
