"""Workloads in groups of their own, what each of their knobs must be, and a third party that changes some."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from dasec.knobs import knob
from dasec.knobs.bursts import BURST
from dasec.knobs.groups import knob_of_group
from dasec.knobs.knob import KnobRef, NativeKnob, NativeValue
from dasec.knobs.masks import AFFINITY
from dasec.knobs.quotas import QUOTA
from dasec.knobs.slices import SLICE
from dasec.knobs.weights import WEIGHT_V1
from dasec.linux import bandwidth, cgroupfs, procfs, schedattr
from dasec.linux.errors import ThreadGone
from dasec.model import VcpuId
from dasec.safety.fingerprint import Fingerprint, fingerprint
from dasec.safety.heirs import parent
from guests.waiting import PATIENCE_S

WORKLOAD = Path(__file__).with_name("workload.py")
FOREIGN_SLICE_NS = 33_333_333
FOREIGN_MASK = (1,)
FOREIGN_WEIGHT = 777
FOREIGN_BURST_US = 1234
FOREIGN_QUOTA = "33000 100000"
GIVEN_QUOTA = "40000 100000"
LIMITS = ("150000 100000", "250000 100000", "180000 100000")
"""Of the group of two families; the operator changes it. v1 refuses one below a cap, which is of less than a
CPU."""


class Arena:
    """Three families of threads in two groups, of which one has a CPU limit; one thread alone in its group; a
    VM of two threads with a group and a quota each."""

    def __init__(self, seed: int) -> None:
        self.hierarchy = cgroupfs.find_hierarchy()
        self.top = f"/dasec-chaos-{os.getpid()}-{seed}"
        self.shared, self.solo, self.pair = (f"{self.top}/{name}" for name in ("shared", "solo", "pair"))
        self.halves = (f"{self.pair}/0", f"{self.pair}/1")
        self.quotas = {self.shared: LIMITS[0], **dict.fromkeys(self.halves, GIVEN_QUOTA)}
        self.homes: dict[int, str] = {}
        self.processes: list[subprocess.Popen[bytes]] = []
        self.slice_ns = schedattr.default_slice_ns()
        self.mask = tuple(sorted(os.sched_getaffinity(0)))
        self.nice = os.getpriority(os.PRIO_PROCESS, 0)
        self.foreign: dict[KnobRef, NativeValue] = {}
        self.overwritten: dict[KnobRef, NativeValue] = {}
        for group in self._groups():
            os.mkdir(self.hierarchy.directory(group))
        for group, quota in self.quotas.items():
            bandwidth.write_quota(self._quota_file(group), quota)
        for number, home in enumerate((self.shared, self.shared, self.top)):
            self._start(seed + number, "family", home)
        self._start(seed + 9, "solo", self.solo)
        for number, half in enumerate(self.halves):
            self._start(seed + 10 + number, "solo", half)

    def close(self) -> None:
        """End the workloads and remove the groups, whatever is in them."""
        for process in self.processes:
            process.kill()
            process.wait()
        paths = [path for path, _, _ in os.walk(self.hierarchy.directory(self.top), topdown=False)]
        until = time.monotonic() + PATIENCE_S
        while time.monotonic() < until:
            for tid in self._tids():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(tid, signal.SIGKILL)
            if all(cgroupfs.remove_group(path) for path in paths):
                return
            time.sleep(0.01)

    def wrong(self) -> list[str]:
        """Everything that is not as it would be without DASEC."""
        now = fingerprint({pid for pid in map(self._pid_of, self._tids()) if pid})
        return [*self._wrong_threads(now), *self._wrong_groups(now)]

    def configuration(self) -> str:
        """Workloads for the daemon: by group, by process id."""
        return "".join(
            f'[[workload]]\nname = "{name}"\n{selector}\n'
            for name, selector in (
                ("shared", f'cgroup = "{self.shared}"'),
                ("top", f"pids = [{self.processes[2].pid}]"),
                ("solo", f"pids = [{self.processes[3].pid}]"),
                ("pair", f'cgroup = "{self.pair}"'),
            )
        )

    def meddle(self, chance: random.Random, *, masks: bool) -> KnobRef | None:
        """A third party sets a knob of a lasting thread, or a burst, to a value of its own; which one, or
        None if that thread has just ended. `masks`: also masks, which a policy might choose as well. Each
        second time the operator gives another limit before."""
        if chance.random() < 0.5:
            self._limit(chance.choice(LIMITS))
        process = chance.choice([*self.processes, None])
        if process is None:
            file = bandwidth.burst_file(self._quota_file(self.shared))
            return self._meddle(knob_of_group(BURST, file), FOREIGN_BURST_US)
        home, is_family = self.homes[process.pid], process in self.processes[:3]
        tids = procfs.thread_ids(process.pid)
        tid = chance.choice(tids[1:4]) if is_family else process.pid
        try:
            who = VcpuId(process.pid, tid, procfs.read_stat(process.pid, tid).start_ticks)
            if home == self.solo:
                file = self.hierarchy.weight_file(self.solo)
                return self._meddle(knob_of_group(WEIGHT_V1, file, who), FOREIGN_WEIGHT)
            if home in self.halves:
                return self._meddle(knob_of_group(QUOTA, self._quota_file(home), who), FOREIGN_QUOTA)
            if not masks or chance.random() < 0.5:
                return self._meddle(KnobRef(who, SLICE), FOREIGN_SLICE_NS)
            return self._meddle(KnobRef(who, AFFINITY), FOREIGN_MASK)
        except ThreadGone:
            return None

    def settle_meddling(self) -> None:
        """After the daemon's death. What the third party wrote must stay, but where the daemon wrote
        over it without having seen it: then that write is lost, or (where the daemon saw it before
        it ever wrote this knob itself) is the prior value."""
        for ref, value in list(self.foreign.items()):
            try:
                if knob.read(ref) != value:
                    self.overwritten[ref] = self.foreign.pop(ref)
            except ThreadGone:
                del self.foreign[ref]

    def stop_meddling(self) -> None:
        """The third party takes back what it did."""
        own: dict[NativeKnob, NativeValue] = {
            SLICE: 0,
            AFFINITY: self.mask,
            WEIGHT_V1: 1024,
            QUOTA: GIVEN_QUOTA,
            BURST: 0,
        }
        for ref in (*self.foreign, *self.overwritten):
            try:
                knob.write(ref, own[ref.kind])
            except ThreadGone:
                continue
        self.foreign.clear()
        self.overwritten.clear()

    def _meddle(self, ref: KnobRef, value: NativeValue) -> KnobRef:
        knob.write(ref, value)
        self.foreign[ref] = value
        return ref

    def _limit(self, quota: str) -> None:
        """Nothing of the daemon's is in this file: what the operator writes stays, whatever happens. The
        kernel refuses a quota below a burst of the daemon's, where a jiffy is long."""
        with contextlib.suppress(OSError):
            bandwidth.write_quota(self._quota_file(self.shared), quota)
            self.quotas[self.shared] = quota

    def _quota_file(self, group: str) -> str:
        return bandwidth.quota_file(self.hierarchy, group)

    def _groups(self) -> tuple[str, ...]:
        return (self.top, self.shared, self.solo, self.pair, *self.halves)

    def _start(self, seed: int, kind: str, home: str) -> None:
        process = subprocess.Popen(
            [sys.executable, "-S", str(WORKLOAD), str(seed), kind], stdin=subprocess.PIPE
        )
        self.homes[process.pid] = home
        self.processes.append(process)
        self.hierarchy.move(process.pid, home)
        assert process.stdin is not None
        process.stdin.write(b"go\n")
        process.stdin.flush()

    def _tids(self) -> Iterator[int]:
        for path, _, _ in os.walk(self.hierarchy.directory(self.top)):
            try:
                yield from map(int, procfs.read_bytes(f"{path}/tasks").split())
            except (ThreadGone, OSError):
                continue

    def _pid_of(self, tid: int) -> int | None:
        try:
            return procfs.process_of(tid)
        except ThreadGone:
            return None

    def _home(self, pid: int) -> str | None:
        try:
            return self.homes.get(pid) or self.homes.get(parent(pid))
        except ThreadGone:
            return None

    def _wrong_threads(self, now: Fingerprint) -> Iterator[str]:
        for vcpu, has in now.threads.items():
            home = self._home(vcpu.pid)
            if home is None:
                continue
            must: dict[str, tuple[NativeValue, ...]] = {
                "slice_ns": self._may_be(KnobRef(vcpu, SLICE), self.slice_ns),
                "nice": (self.nice,),
                "policy": (0,),
                "affinity": self._may_be(KnobRef(vcpu, AFFINITY), self.mask),
                "cgroup": (home,),
            }
            for what, values in must.items():
                if has[what] not in values:
                    yield f"thread {vcpu.tid} of {vcpu.pid}: {what} is {has[what]}, must be {values}"

    def _may_be(self, ref: KnobRef, usual: NativeValue) -> tuple[NativeValue, ...]:
        if ref in self.overwritten:
            return usual, self.overwritten[ref]
        return (self.foreign.get(ref, usual),)

    def _wrong_groups(self, now: Fingerprint) -> Iterator[str]:
        top = self.hierarchy.directory(self.top)
        expected = {self.hierarchy.directory(group): group for group in self._groups()}
        both = (*self.foreign, *self.overwritten)
        file_of = {ref.file: ref for ref in both if ref.kind.of_group}
        for path, has in now.groups.items():
            if path != top and not path.startswith(f"{top}/"):
                continue
            if path not in expected:
                yield f"group {path} is left over"
                continue
            for what, (file, usual) in self._usual(expected[path]).items():
                ref = file_of.get(file)
                must = self._may_be(ref, usual) if ref else (usual,)
                if has[what] not in must:
                    yield f"{what} of {path} is {has[what]}, must be {must}"

    def _usual(self, group: str) -> dict[str, tuple[str, NativeValue]]:
        """What a group holds while nobody meddles, and in which files."""
        quota = self._quota_file(group)
        return {
            "weight": (self.hierarchy.weight_file(group), 1024),
            "quota": (quota, self.quotas.get(group, "max 100000")),
            "burst": (bandwidth.burst_file(quota), 0),
        }
