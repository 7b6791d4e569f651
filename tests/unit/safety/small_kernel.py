"""A small kernel for restore: threads with knobs that inherit as clone(2) does, and groups."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import astuple, dataclass, field
from typing import NamedTuple

from dasec.knobs import groups, masks, patched, quotas, slices, weights, words
from dasec.knobs.groups import CGROUP
from dasec.knobs.knob import KnobRef, NativeKnob, NativeValue
from dasec.knobs.masks import cut
from dasec.knobs.slices import SLICE
from dasec.linux.errors import ThreadGone
from dasec.model import VcpuId
from dasec.safety.kernel import Progress

MOUNT = "/cg"
DEFAULT_SLICE_NS = 1_400_000
NEUTRAL = 1024
ALL_CPUS = (0, 1, 2, 3)


@dataclass
class Thread:
    """What a thread has of its own."""

    slice_ns: int = DEFAULT_SLICE_NS
    asked: tuple[int, ...] = ()
    group: str = "/"
    granularity: NativeValue = "default"
    weight: NativeValue = "default"
    cpuset: tuple[int, ...] = ALL_CPUS
    state: str = "S"
    ran_ns: int = 0
    did_ns: int = 0
    pace: float = 1.0
    blocked_until_ns: int = 0

    @property
    def mask(self) -> tuple[int, ...]:
        """What is in force of the mask that was asked for."""
        return cut(self.asked or ALL_CPUS, frozenset(self.cpuset))


class Birth(NamedTuple):
    """A clone(2) that is under way until the parent has done so much."""

    parent: VcpuId
    child: VcpuId
    young: Thread
    at_ns: int
    then: str


@dataclass
class SmallKernel:
    """Implements dasec.safety.kernel.Kernel.

    `steals`: the part of a CPU that the hypervisor takes, which counts as the CPU time of whoever runs.
    """

    threads: dict[VcpuId, Thread] = field(default_factory=dict)
    weights: dict[str, int] = field(default_factory=dict)
    parents: dict[int, int] = field(default_factory=dict)
    controllers: dict[str, str] = field(default_factory=dict)
    quotas: dict[str, str] = field(default_factory=dict)
    refuses: set[KnobRef] = field(default_factory=set)
    broken: set[KnobRef | str] = field(default_factory=set)
    """Knobs, directories and "family", of which a file makes a parser of ours fail."""
    log: list[tuple[NativeKnob, int]] = field(default_factory=list)
    unborn: list[Birth] = field(default_factory=list)
    now_ns: int = 0
    steals: float = 0.0
    page_tables_kib: int = 0

    # The world outside DASEC.

    def make_group(self, path: str, weight: int = NEUTRAL) -> str:
        self.weights[f"{MOUNT}{path}/cpu.shares"] = weight
        return path

    def start(self, vcpu: VcpuId, group: str = "/") -> VcpuId:
        self.threads[vcpu] = Thread(group=group)
        return vcpu

    def clone(self, parent: VcpuId, child: VcpuId) -> VcpuId:
        """All of clone(2)."""
        had = self.threads[parent]
        self._bear(parent, child, Thread(had.slice_ns, had.asked, had.group, cpuset=had.cpuset))
        return child

    def conceive(self, parent: VcpuId, child: VcpuId, takes_ns: int = 200_000, then: str = "S") -> None:
        """The first half of clone(2): the child has its parent's knobs and does not show until its parent
        has run for so long. `then`: the parent's state after it."""
        had = self.threads[parent]
        had.state = "R" if had.state == "S" else had.state
        young = Thread(had.slice_ns, had.asked, had.group, cpuset=had.cpuset)
        self.unborn.append(Birth(parent, child, young, had.did_ns + takes_ns, then))

    def _bear(self, parent: VcpuId, child: VcpuId, young: Thread) -> None:
        self.threads[child] = young
        if child.pid != parent.pid:
            self.parents[child.pid] = parent.pid

    def end(self, vcpu: VcpuId) -> None:
        del self.threads[vcpu]

    def set(self, ref: KnobRef, value: NativeValue) -> None:
        match ref.kind, value:
            case slices.SLICE, int():
                self.threads[ref.vcpu].slice_ns = value or DEFAULT_SLICE_NS
            case masks.AFFINITY, tuple():
                thread = self.threads[ref.vcpu]
                if set(value or ALL_CPUS).isdisjoint(thread.cpuset):
                    raise OSError(22, "its cpuset has none of them")
                thread.asked = () if value == ALL_CPUS else value
            case ((weights.WEIGHT_V1 | weights.WEIGHT_V2), int()):
                if ref.file not in self.weights:
                    raise ThreadGone(ref.file)
                self.weights[ref.file] = value
            case groups.CGROUP, str():
                if value != "/" and f"{MOUNT}{value}/cpu.shares" not in self.weights:
                    raise ThreadGone(value)
                self.threads[ref.vcpu].group = value
            case groups.CONTROLLERS, str():
                self.controllers[ref.file] = value
            case quotas.QUOTA, str():
                self.quotas[ref.file] = value
            case ((patched.GRANULARITY | words.EXT_LATENCY), _):
                self.threads[ref.vcpu].granularity = value
            case ((patched.THREAD_WEIGHT | words.EXT_WEIGHT), _):
                self.threads[ref.vcpu].weight = value
            case _:
                raise OSError(22, "no such value")

    def snapshot(self) -> tuple[object, ...]:
        """Everything that DASEC may change."""
        threads = {vcpu: astuple(one)[:5] for vcpu, one in self.threads.items()}
        return threads, dict(self.weights), dict(self.controllers)

    # What restore asks for.

    def read(self, ref: KnobRef) -> NativeValue:
        self._parse(ref)
        if isinstance(ref.owner, VcpuId) and ref.owner not in self.threads:
            raise ThreadGone(str(ref.owner))
        match ref.kind:
            case slices.SLICE:
                return self.threads[ref.vcpu].slice_ns
            case masks.AFFINITY:
                return self.threads[ref.vcpu].mask
            case groups.CGROUP:
                return self.threads[ref.vcpu].group
            case groups.CONTROLLERS:
                return self.controllers[ref.file]
            case quotas.QUOTA:
                return self.quotas[ref.file]
            case patched.GRANULARITY | words.EXT_LATENCY:
                return self.threads[ref.vcpu].granularity
            case patched.THREAD_WEIGHT | words.EXT_WEIGHT:
                return self.threads[ref.vcpu].weight
        if ref.file not in self.weights:
            raise ThreadGone(ref.file)
        return self.weights[ref.file]

    def write(self, ref: KnobRef, value: NativeValue) -> None:
        self.read(ref)
        if ref in self.refuses:
            raise OSError(16, "Device or resource busy")
        self.log.append((ref.kind, ref.sake.tid if ref.sake else 0))
        self.set(ref, value)

    def in_force(self, ref: KnobRef, value: NativeValue) -> NativeValue:
        if isinstance(value, tuple):
            return cut(value or ALL_CPUS, frozenset(self.threads[ref.vcpu].cpuset))
        return DEFAULT_SLICE_NS if (ref.kind, value) == (SLICE, 0) else value

    def family(self, pids: frozenset[int]) -> Iterator[tuple[VcpuId, tuple[int, ...]]]:
        self._parse("family")
        for vcpu in list(self.threads):
            line = tuple(pid for pid in (vcpu.pid, self.parents.get(vcpu.pid, 0)) if pid in pids)
            if line:
                yield vcpu, line

    def progress(self, vcpu: VcpuId) -> Progress:
        if vcpu not in self.threads:
            raise ThreadGone(str(vcpu))
        one = self.threads[vcpu]
        return Progress(one.state in "STZ", one.ran_ns)

    def tables_kib(self, pid: int) -> int:
        return self.page_tables_kib

    def stolen_ns(self) -> int:
        return round(self.now_ns * self.steals)

    def clock_ns(self) -> int:
        return self.now_ns

    def pause(self, seconds: float) -> None:
        """Everybody who wants to run gets his part of that time."""
        self.now_ns += round(seconds * 1e9)
        for one in self.threads.values():
            if one.state == "D" and self.now_ns >= one.blocked_until_ns:
                one.state = "R"
            if one.state == "R":
                one.did_ns += round(seconds * 1e9 * one.pace)
                one.ran_ns += round(seconds * 1e9 * (one.pace + self.steals))
        for birth in [one for one in self.unborn if self.threads[one.parent].did_ns >= one.at_ns]:
            self.unborn.remove(birth)
            self._bear(birth.parent, birth.child, birth.young)
            self.threads[birth.parent].state = birth.then

    def members(self, directory: str) -> tuple[VcpuId, ...]:
        self._parse(directory)
        return tuple(vcpu for vcpu, one in self.threads.items() if MOUNT + one.group == directory)

    def move(self, member: VcpuId, directory: str) -> None:
        self.log.append((CGROUP, member.tid))
        self.set(KnobRef(member, CGROUP, MOUNT), directory.removeprefix(MOUNT) or "/")

    def related(self, member: VcpuId, pids: frozenset[int]) -> bool:
        return member.pid in pids or self.parents.get(member.pid, 0) in pids

    def remove_group(self, directory: str) -> bool:
        below = any(
            path.startswith(f"{directory}/") and path.count("/") > directory.count("/") + 1
            for path in self.weights
        )
        if below or self.members(directory):
            return False
        self.weights.pop(f"{directory}/cpu.shares", None)
        return True

    def _parse(self, what: KnobRef | str) -> None:
        if what in self.broken:
            raise IndexError("list index out of range")
