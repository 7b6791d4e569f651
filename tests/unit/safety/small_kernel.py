"""A small kernel for restore: threads with knobs that inherit as clone(2) does, and groups."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import astuple, dataclass, field

from dasec.linux.errors import ThreadGone
from dasec.linux.knob import KnobRef, NativeKnob, NativeValue
from dasec.model import VcpuId

MOUNT = "/cg"
DEFAULT_SLICE_NS = 1_400_000
NEUTRAL = 1024
ALL_CPUS = (0, 1, 2, 3)


@dataclass
class Thread:
    """What a thread has of its own."""

    slice_ns: int = DEFAULT_SLICE_NS
    mask: tuple[int, ...] = ALL_CPUS
    group: str = "/"
    granularity: NativeValue = "default"
    weight: NativeValue = "default"


@dataclass
class SmallKernel:
    """Implements dasec.safety.kernel.Kernel."""

    threads: dict[VcpuId, Thread] = field(default_factory=dict)
    weights: dict[str, int] = field(default_factory=dict)
    parents: dict[int, int] = field(default_factory=dict)
    controllers: dict[str, str] = field(default_factory=dict)
    refuses: set[KnobRef] = field(default_factory=set)
    log: list[tuple[NativeKnob, int]] = field(default_factory=list)
    unborn: dict[VcpuId, Thread] = field(default_factory=dict)

    # The world outside DASEC.

    def make_group(self, path: str, weight: int = NEUTRAL) -> str:
        self.weights[f"{MOUNT}{path}/cpu.shares"] = weight
        return path

    def start(self, vcpu: VcpuId, group: str = "/") -> VcpuId:
        self.threads[vcpu] = Thread(group=group)
        return vcpu

    def clone(self, parent: VcpuId, child: VcpuId) -> VcpuId:
        self.conceive(parent, child)
        self.let_births_end(0.0)
        return child

    def conceive(self, parent: VcpuId, child: VcpuId) -> None:
        """The first half of clone(2): the child has its parent's knobs and does not show yet."""
        had = self.threads[parent]
        self.unborn[child] = Thread(had.slice_ns, had.mask, had.group)
        if child.pid != parent.pid:
            self.parents[child.pid] = parent.pid

    def end(self, vcpu: VcpuId) -> None:
        del self.threads[vcpu]

    def set(self, ref: KnobRef, value: NativeValue) -> None:
        match ref.kind, value:
            case NativeKnob.SLICE, int():
                self.threads[ref.vcpu].slice_ns = value or DEFAULT_SLICE_NS
            case NativeKnob.AFFINITY, tuple():
                self.threads[ref.vcpu].mask = value or ALL_CPUS
            case ((NativeKnob.WEIGHT_V1 | NativeKnob.WEIGHT_V2), int()):
                if ref.path not in self.weights:
                    raise ThreadGone(ref.path)
                self.weights[ref.path] = value
            case NativeKnob.CGROUP, str():
                if value != "/" and f"{MOUNT}{value}/cpu.shares" not in self.weights:
                    raise ThreadGone(value)
                self.threads[ref.vcpu].group = value
            case NativeKnob.CONTROLLERS, str():
                self.controllers[ref.path] = value
            case NativeKnob.GRANULARITY, _:
                self.threads[ref.vcpu].granularity = value
            case NativeKnob.THREAD_WEIGHT, _:
                self.threads[ref.vcpu].weight = value
            case _:
                raise OSError(22, "no such value")

    def snapshot(self) -> tuple[object, ...]:
        """Everything that DASEC may change."""
        threads = {vcpu: astuple(one) for vcpu, one in self.threads.items()}
        return threads, dict(self.weights), dict(self.controllers)

    # What restore asks for.

    def read(self, ref: KnobRef) -> NativeValue:
        if ref.kind is not NativeKnob.CONTROLLERS and ref.vcpu not in self.threads:
            raise ThreadGone(str(ref.vcpu))
        return self.read_orphan(ref)

    def write(self, ref: KnobRef, value: NativeValue) -> None:
        self.read(ref)
        self.write_orphan(ref, value)

    def read_orphan(self, ref: KnobRef) -> NativeValue:
        match ref.kind:
            case NativeKnob.SLICE:
                return self.threads[ref.vcpu].slice_ns
            case NativeKnob.AFFINITY:
                return self.threads[ref.vcpu].mask
            case NativeKnob.CGROUP:
                return self.threads[ref.vcpu].group
            case NativeKnob.CONTROLLERS:
                return self.controllers[ref.path]
            case NativeKnob.GRANULARITY:
                return self.threads[ref.vcpu].granularity
            case NativeKnob.THREAD_WEIGHT:
                return self.threads[ref.vcpu].weight
        if ref.path not in self.weights:
            raise ThreadGone(ref.path)
        return self.weights[ref.path]

    def write_orphan(self, ref: KnobRef, value: NativeValue) -> None:
        if ref in self.refuses:
            raise OSError(16, "Device or resource busy")
        self.log.append((ref.kind, ref.vcpu.tid))
        self.set(ref, value)

    def unset(self, ref: KnobRef) -> NativeValue:
        return DEFAULT_SLICE_NS if ref.kind is NativeKnob.SLICE else ALL_CPUS

    def family(self, pids: frozenset[int]) -> Iterator[tuple[VcpuId, tuple[int, ...]]]:
        for vcpu in list(self.threads):
            line = tuple(pid for pid in (vcpu.pid, self.parents.get(vcpu.pid, 0)) if pid in pids)
            if line:
                yield vcpu, line

    def let_births_end(self, seconds: float) -> None:
        self.threads.update(self.unborn)
        self.unborn.clear()

    def members(self, directory: str) -> tuple[VcpuId, ...]:
        return tuple(vcpu for vcpu, one in self.threads.items() if MOUNT + one.group == directory)

    def move(self, member: VcpuId, directory: str) -> None:
        self.log.append((NativeKnob.CGROUP, member.tid))
        self.set(KnobRef(member, NativeKnob.CGROUP, MOUNT), directory.removeprefix(MOUNT) or "/")

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
