"""What the contract suite needs besides a Host: threads to manage, and somebody who meddles."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Protocol

from dasec.hosts.fake.fake import FakeHost
from dasec.hosts.host import Host, HostSettings, OnForeignWrite
from dasec.hosts.mainline import Mainline
from dasec.hosts.open import probe
from dasec.hosts.patched import PatchedCfs
from dasec.hosts.sched_ext import SchedExt
from dasec.hosts.threads.host import ThreadsHost
from dasec.knobs import knob
from dasec.knobs.knob import KnobRef, NativeKnob
from dasec.knobs.masks import AFFINITY
from dasec.knobs.patched import GRANULARITY, THREAD_WEIGHT
from dasec.knobs.slices import SLICE
from dasec.knobs.weights import WEIGHT_V1, WEIGHT_V2
from dasec.knobs.words import EXT_LATENCY, EXT_WEIGHT
from dasec.linux import affinity, cgroupfs, dasecfile, procfs, schedattr
from dasec.model import Capabilities, Core, Knob, Knobs, KnobValue, VcpuId
from dasec.roster import RosterEntry
from dasec.safety.journal.journal import Journal
from guests.waiting import wait_for

NOTHING = Capabilities("mainline", False, "", False, "", False, "", False, "")


@cache
def probed() -> Capabilities:
    """What this kernel can do without our patch."""
    return probe("mainline", duel=False)


@cache
def probed_with_patch() -> Capabilities:
    """What it can do with the patch, if it has it."""
    return probe("patched_cfs", duel=False)


@cache
def probed_with_scheduler() -> Capabilities:
    """What it can do by way of our sched_ext scheduler, if it takes one."""
    return probe("sched_ext", duel=False)


CLOCK_NANOSLEEP = {"x86_64": 230, "aarch64": 115}[platform.machine()]


class Stage(Protocol):
    """A host with sleeping threads, one process each."""

    host: Host

    def spawn(self) -> VcpuId:
        """One more thread."""

    def end(self, vcpu: VcpuId) -> None:
        """The thread ends."""

    def meddle(self, vcpu: VcpuId, which: Knob, value: KnobValue) -> None:
        """Somebody else writes a knob."""

    def make_realtime(self, vcpu: VcpuId) -> None:
        """Somebody gives the thread a real-time policy."""

    def held_by_kernel(self, vcpu: VcpuId) -> Knobs:
        """The knobs that the kernel has, whoever wrote them."""

    def close(self) -> None:
        """End everything."""


def roster(*groups: Sequence[VcpuId]) -> tuple[RosterEntry, ...]:
    """Workloads w0, w1, … of these threads."""
    return tuple(
        RosterEntry(f"w{number}", None, tuple((one.pid, one.tid) for one in group))
        for number, group in enumerate(groups)
    )


class FakeStage:
    """The fake host on its fake kernel."""

    def __init__(self, *, dry_run: bool) -> None:
        self._fake = FakeHost(dry_run=dry_run)
        self.host: Host = self._fake
        self._next = 100

    def spawn(self) -> VcpuId:
        self._next += 1
        return self._fake.spawn(self._next, self._next)

    def end(self, vcpu: VcpuId) -> None:
        self._fake.end(vcpu)

    def meddle(self, vcpu: VcpuId, which: Knob, value: KnobValue) -> None:
        self._fake.meddle(vcpu, which, value)

    def make_realtime(self, vcpu: VcpuId) -> None:
        self._fake.turn(vcpu, "fifo")

    def held_by_kernel(self, vcpu: VcpuId) -> Knobs:
        return self._fake.knobs_of(vcpu)

    def close(self) -> None:
        pass


class MainlineStage:
    """The mainline host on this kernel, with groups of its own, and `sleep` processes."""

    def __init__(
        self,
        directory: Path,
        *,
        dry_run: bool,
        own_groups: bool = True,
        answer: OnForeignWrite = OnForeignWrite.YIELD,
        bpf: bool = True,
        nice: bool = False,
    ) -> None:
        self.journal, _ = Journal.open(directory)
        self.mainline = self.make(
            HostSettings(own_groups=own_groups, on_foreign_write=answer, dry_run=dry_run, bpf=bpf, nice=nice)
        )
        self.host: Host = self.mainline
        self._spawned: set[int] = set()
        self._children: dict[int, subprocess.Popen[bytes]] = {}
        self.hierarchy = cgroupfs.find_hierarchy()

    def make(self, settings: HostSettings) -> ThreadsHost:
        return Mainline(self.journal, probed(), settings)

    def spawn(self) -> VcpuId:
        child = subprocess.Popen(["sleep", "1000"])
        self._children[child.pid] = child
        self._spawned.add(child.pid)
        not_niced(child.pid)
        _wait_until_asleep(child.pid)
        return VcpuId(child.pid, child.pid, procfs.read_stat(child.pid, child.pid).start_ticks)

    def end(self, vcpu: VcpuId) -> None:
        child = self._children.pop(vcpu.pid)
        child.kill()
        child.wait()

    def meddle(self, vcpu: VcpuId, which: Knob, value: KnobValue) -> None:
        if isinstance(value, frozenset):
            knob.write(KnobRef(vcpu, AFFINITY), tuple(sorted(value)))
        elif which is Knob.WEIGHT:
            native = self._kind.native(value)
            assert isinstance(native, int)
            cgroupfs.write_weight(self._weight_file(vcpu), native)
        else:
            knob.write(KnobRef(vcpu, SLICE), value)

    def make_realtime(self, vcpu: VcpuId) -> None:
        os.sched_setscheduler(vcpu.tid, os.SCHED_FIFO, os.sched_param(1))

    def held_by_kernel(self, vcpu: VcpuId) -> Knobs:
        mask = frozenset(Core(cpu) for cpu in affinity.get(vcpu.tid))
        group = self.hierarchy.group_of(vcpu.pid, vcpu.tid)
        weight = 1024
        if group != "/":
            seen = self._kind.model(cgroupfs.read_weight(self._weight_file(vcpu)))
            assert isinstance(seen, int)
            weight = seen
        return Knobs(weight, schedattr.get(vcpu.tid).slice_ns, mask)

    def group_of(self, vcpu: VcpuId) -> str:
        return self.hierarchy.group_of(vcpu.pid, vcpu.tid)

    def own_groups(self) -> list[str]:
        """Groups made for our own threads, by name."""
        mine = {f"dasec-{pid}" for pid in self._spawned}
        return sorted(mine & set(os.listdir(self.hierarchy.mount)))

    def close(self) -> None:
        try:
            self.mainline.close()
            self.journal.close()
        finally:
            for child in self._children.values():
                child.kill()
                child.wait()

    @property
    def _kind(self) -> NativeKnob:
        return WEIGHT_V1 if self.hierarchy.version == 1 else WEIGHT_V2

    def _weight_file(self, vcpu: VcpuId) -> str:
        return self.hierarchy.weight_file(self.hierarchy.group_of(vcpu.pid, vcpu.tid))


class OwnKnobsStage(MainlineStage):
    """A host whose threads have weight and latency of their own, in whatever group they are."""

    weight: NativeKnob
    latency: NativeKnob

    def meddle(self, vcpu: VcpuId, which: Knob, value: KnobValue) -> None:
        if isinstance(value, frozenset):
            super().meddle(vcpu, which, value)
        else:
            knob.write(KnobRef(vcpu, self.weight if which is Knob.WEIGHT else self.latency), value)

    def held_by_kernel(self, vcpu: VcpuId) -> Knobs:
        """0 stands for a knob that nobody has set."""
        mask = frozenset(Core(cpu) for cpu in affinity.get(vcpu.tid))
        weight, latency = (_or_zero(knob.read(KnobRef(vcpu, kind))) for kind in (self.weight, self.latency))
        return Knobs(weight, latency, mask)


class PatchedStage(OwnKnobsStage):
    """The host on our patched kernel."""

    weight, latency = THREAD_WEIGHT, GRANULARITY

    def make(self, settings: HostSettings) -> ThreadsHost:
        return PatchedCfs(self.journal, probed_with_patch(), settings)


class ExtStage(OwnKnobsStage):
    """The host whose scheduler is ours: knobs are words to it."""

    weight, latency = EXT_WEIGHT, EXT_LATENCY

    def make(self, settings: HostSettings) -> ThreadsHost:
        return SchedExt(self.journal, probed_with_scheduler(), settings)


def _or_zero(value: knob.NativeValue) -> int:
    """No knob that the tests set is 0."""
    assert isinstance(value, int) or value == dasecfile.DEFAULT
    return value if isinstance(value, int) else 0


def not_niced(pid: int) -> None:
    """However niced the test run is: a niced thread gets no weight."""
    for tid in procfs.thread_ids(pid):
        os.setpriority(os.PRIO_PROCESS, tid, 0)


def _wait_until_asleep(pid: int) -> None:
    """It has called clock_nanosleep, and nothing is left to do for it."""
    nanosleep = str(CLOCK_NANOSLEEP).encode()
    wait_for(
        lambda: (
            procfs.read_bytes(f"/proc/{pid}/syscall").split()[0] == nanosleep
            and procfs.read_stat(pid, pid).state == "S"
        ),
        every_s=0.001,
    )
