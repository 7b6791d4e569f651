"""The CPUs that a thread asked for: its mask.

A mask is cut by the cpuset and by CPUs that are offline. The kernel keeps what was asked for and cuts it anew
each time that they change (user_cpus_ptr, since 6.2: 8f9ea86fdf99). Before 6.2 each such change makes the
mask the whole cpuset, whoever had set it.
"""

from __future__ import annotations

from ..linux import affinity, cgroupfs, cpus, procfs
from ..model import Knob, KnobValue
from .knob import KnobRef, NativeKnob, NativeValue, cores_of, no_value

_LOOKS = 3
"""At a mask that reads differently each time."""


class Mask(NativeKnob):
    """() is no mask of its own. In QEMU, of which we hold the vCPU threads, a narrow mask that equals one of
    ours is more likely its owner's own pin than something inherited from a vCPU (`bequeathed_by_main`)."""

    serves = Knob.AFFINITY
    unset = ()
    inherited = bequeathed_by_main = in_task = glances = True

    def read(self, ref: KnobRef, proc: str) -> NativeValue:
        """See NativeKnob."""
        return affinity.get(ref.vcpu.tid) or _offline_mask(ref, proc)

    def write(self, ref: KnobRef, value: NativeValue, proc: str, descriptor: int | None = None) -> None:
        """See NativeKnob."""
        if not isinstance(value, tuple):
            raise no_value(self, value)
        affinity.put(ref.vcpu.tid, value)

    def native(self, value: KnobValue) -> NativeValue:
        """See NativeKnob."""
        assert isinstance(value, frozenset), "cores"
        return tuple(sorted(value))

    def model(self, value: NativeValue) -> KnobValue:
        """See NativeKnob."""
        return cores_of(value)

    def in_force(self, ref: KnobRef, value: NativeValue, proc: str) -> NativeValue:
        """See NativeKnob. Of a thread that has ended the cpuset reads as the top one on v1: its mask is what
        it is. It must not count as gone: that it is there proves whose number its process has
        (safety/newcomers.py)."""
        in_force = cut(value, allowed_now(ref, proc)) if isinstance(value, tuple) else value
        has_ended = procfs.read_stat(ref.vcpu.pid, ref.vcpu.tid, proc).has_ended
        return self.read(ref, proc) if has_ended else in_force

    def may_read(self, value: NativeValue, present: NativeValue) -> bool:
        """See NativeKnob. A cpuset leaves a part of it, or nothing of it and something else."""
        if not isinstance(value, tuple) or not isinstance(present, tuple) or value == present:
            return False
        common = len(set(value) & set(present))
        return common in (0, len(present))

    def prior_of(self, ref: KnobRef, found: NativeValue, proc: str) -> NativeValue:
        """See NativeKnob. A mask that is all its cpuset allows was never set; another keeps CPUs that are
        offline now. What was asked for before a cpuset cut it, nothing tells.

        The cpuset may change between our look at the mask and at the cpuset: then we look again.
        """
        whole = procfs.cpus_allowed(ref.vcpu.pid, ref.vcpu.tid, proc)
        for _ in range(_LOOKS):
            if whole == _never_set(ref, proc):
                return ()
            before, whole = whole, procfs.cpus_allowed(ref.vcpu.pid, ref.vcpu.tid, proc)
            if whole == before:
                break
        return tuple(sorted(whole))

    def shown(self, value: NativeValue) -> object:
        """See NativeKnob."""
        return affinity.mask_of(value, affinity.KERNEL_BYTES) if isinstance(value, tuple) else None

    def glance(self, tid: int) -> object:
        """See NativeKnob."""
        return affinity.mask(tid)


def allowed_now(ref: KnobRef, proc: str = procfs.PROC) -> frozenset[int]:
    """The CPUs that the thread's cpuset allows and that are online. Raises ThreadGone, or OSError."""
    online = cpus.online()
    return (cgroupfs.cpuset_of(ref.vcpu.pid, ref.vcpu.tid, proc).cpus or online) & online


def cut(mask: tuple[int, ...], allowed: frozenset[int]) -> tuple[int, ...]:
    """What is in force of a mask: what these CPUs leave of it, or all of them where that is nothing."""
    return tuple(sorted(allowed.intersection(mask) or allowed))


def _offline_mask(ref: KnobRef, proc: str) -> tuple[int, ...]:
    """The mask of a thread that sleeps while all its CPUs are offline. It keeps them until it wakes up."""
    return tuple(sorted(procfs.cpus_allowed(ref.vcpu.pid, ref.vcpu.tid, proc)))


def _never_set(ref: KnobRef, proc: str) -> frozenset[int]:
    """The mask, with CPUs that are offline, of a thread there that nobody ever gave one. Only in the top
    cpuset is it left as it is when CPUs go (cpuset_cpus_allowed())."""
    cpuset = cgroupfs.cpuset_of(ref.vcpu.pid, ref.vcpu.tid, proc)
    online = cpus.online()
    offline = cpus.possible() - online if cpuset.is_top else frozenset[int]()
    return (cpuset.cpus or online) | offline


AFFINITY = Mask("affinity")
