"""What every host offers: capabilities, observe, apply, watch, restore. Nothing else touches a kernel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from ..model import Capabilities, Change, Core, Level, Restored, Result, Shortfall, Snapshot
from ..roster import RosterEntry

ROOM = 16_384
"""Threads on the whole host. BPF has seats for so many (bpf/thread_counters.py): with one more, every thread
would be read from /proc. The journal has room for four knobs of each."""

MOST_THREADS = 4096
"""Threads of one workload, by default: when all work, a look at so many takes 50 ms (docs/overhead.md). There
are as many slots for wake-ups."""


VM_LEVEL = 2
"""Where libvirt, systemd and Docker put theirs: machine.slice/machine-qemu….scope (docs/sched-ext.md)."""

DEEPEST_VM_LEVEL = 8
"""Against slips of the pen: no manager of VMs or containers nests so deep."""


CAPS_ON_V1 = (
    "while caps are in force the kernel refuses a limit below one of them: before you lower a limit,"
    ' `policy = "none"` and `dasec reload`'
)
"""What an operator has to know where cpu groups are cgroup v1's: tg_cfs_schedulable_down() refuses a group a
quota that is less, in its period, than that of a group inside it (docs/bandwidth.md)."""


class OnForeignWrite(StrEnum):
    """What to do when somebody else writes a knob that we hold."""

    YIELD = "yield"
    REAPPLY = "reapply"
    ALERT = "alert"


@dataclass(frozen=True, slots=True)
class HostSettings:
    """What the daemon was told about its host. `edges`: how much of who wakes whom its policy wants.
    `caps`: whether limits are looked at. `burst`: whether they get a small burst. `vm_level`: how deep the
    groups lie that are VMs to our scheduler; `partial`: whether it has only the threads of workloads, and the
    kernel's own all others. `nice`: whether a thread that shares its group gets its weight by nice."""

    cpus: frozenset[Core] | None = None
    own_groups: bool = False
    on_foreign_write: OnForeignWrite = OnForeignWrite.YIELD
    dry_run: bool = False
    bpf: bool = True
    edges: Level = Level.NONE
    most: int = MOST_THREADS
    caps: bool = False
    burst: bool = False
    vm_level: int = VM_LEVEL
    partial: bool = False
    nice: bool = False


BY_DEFAULT = HostSettings()


class Host(Protocol):
    """A kernel, or a fake of one. Implementations pass tests/contract/."""

    @property
    def capabilities(self) -> Capabilities:
        """What this host can do, as probed when it was made; less if a scheduler of ours was put out."""

    def observe(self, roster: Sequence[RosterEntry]) -> Snapshot:
        """The state of every vCPU of the roster now. A vanished thread is left out, never an error."""

    def apply(self, changes: Sequence[Change]) -> tuple[Result, ...]:
        """Journal, check identity, write. One Result a Change, in order; never raises for one thread."""

    def watch(self, wanted: bool) -> None:
        """Follow wake-ups from now on, or leave that out because it costs those who wake up; at first they
        are followed, and by a kernel that counts them itself always. A snapshot says if they were not. Never
        raises."""

    def restore(self) -> Restored:
        """Put every knob that we hold back to its prior value. Idempotent."""

    def notices(self) -> tuple[str, ...]:
        """What an operator should hear, each once."""

    def shortfall(self) -> Shortfall:
        """What is left out for want of room."""

    def close(self) -> None:
        """Put everything back and let all descriptors go."""
