"""One knob of one thread or group, in the kernel's own units: read it, write it.

The only place that writes a knob: the host, the keeper and `dasec restore` all come
through here, so that all of them mean the same thing by "prior" and "ours".
What differs from kind to kind is a row: a class in a file beside this one, and its line in table.py.

The identity check and the write are two steps. Between them the thread could end and its
id be given out again only if the kernel handed out every other id in those microseconds.
"""

from __future__ import annotations

import errno
import os
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar, NamedTuple

from ..linux import procfs
from ..linux.errors import ThreadGone
from ..model import Core, Knob, KnobValue, VcpuId

NativeValue = int | str | tuple[int, ...]
"""What a knob holds, JSON-plain (a tuple comes back from JSON as a list: make it a tuple again)."""

_GONE = {errno.ESRCH, errno.ENOENT, errno.ENODEV}


class NativeKnob(ABC):
    """All that anybody has to know of one kind of knob: its row. Each kind is one object, known by `name` in
    the journal and to people."""

    serves: Knob | None = None
    """The model's knob that it is for."""

    of_group: ClassVar[bool] = False
    """It is a group's, and outlives the thread for whose sake it is changed."""

    unset: NativeValue | None = None
    """What is written to it so that it is as if nobody had ever set it."""

    inherited: ClassVar[bool] = False
    """A thread is born with that of the one that started it."""

    bequeathed_by_main: ClassVar[bool] = False
    """A value of ours counts as inherited only in a process whose main thread we hold."""

    found_anywhere: ClassVar[bool] = False
    """Its values are ours whoever has them, so it does not matter of whom he has them."""

    in_task: ClassVar[bool] = False
    """Writing it changes the number that bpf/thread_counters.bpf.c has of a thread's knobs."""

    fair_only: ClassVar[bool] = False
    """The kernel neither shows nor takes it while the thread is in no fair class."""

    glances: ClassVar[bool] = False
    """Can `glance` tell by one system call whether it is what it should be?"""

    lost_at_end: ClassVar[bool] = False
    """Of a thread that has ended, and is still there, it reads as that of nobody."""

    after_groups: ClassVar[bool] = False
    """It can be put back only when the groups that we made are gone."""

    put_back_by: KnobValue | None = None
    """The value of the model that stands for what was there before us, if there is one."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return self.name

    @abstractmethod
    def read(self, ref: KnobRef, proc: str) -> NativeValue:
        """Its present value. Raises ThreadGone, or OSError."""

    @abstractmethod
    def write(self, ref: KnobRef, value: NativeValue, proc: str, descriptor: int | None = None) -> None:
        """Set it. `descriptor`: its file, kept open. Raises ThreadGone, or OSError."""

    def give_back(self, ref: KnobRef, prior: NativeValue, proc: str) -> None:
        """Set it to what was there before us."""
        self.write(ref, prior, proc)

    def native(self, value: KnobValue) -> NativeValue:
        """A value of the model as the kernel takes it."""
        raise TypeError(f"{value!r} is no value for {self}")

    def model(self, value: NativeValue) -> KnobValue:
        """A value of the kernel's as the model has it."""
        raise TypeError(f"{self} has no place in the model")

    def taken(self, value: KnobValue) -> KnobValue:
        """What is in force, in the model, once the kernel was given that: the same, unless it was cut."""
        return value

    def half_written(
        self, ref: KnobRef, prior: NativeValue, ours: Sequence[NativeValue], present: NativeValue
    ) -> bool:
        """Does it read so because we were ended in the middle of a write?"""
        return False

    def meant(self, prior: NativeValue, ours: Sequence[NativeValue], present: NativeValue) -> NativeValue:
        """What somebody else meant it to be who wrote over ours: the present value, unless a part of that is
        still ours."""
        return present

    def in_force(self, ref: KnobRef, value: NativeValue, proc: str) -> NativeValue:
        """What it reads as while `value` is what was last asked for. Raises ThreadGone, or OSError."""
        return value

    def may_read(self, value: NativeValue, present: NativeValue) -> bool:
        """Could it read so, although another value was last asked for? Spares asking what is in force."""
        return False

    def prior_of(self, ref: KnobRef, found: NativeValue, proc: str) -> NativeValue:
        """What to put back where `found` was there before us. Raises ThreadGone, or OSError."""
        is_unset = self.unset is not None and found == self.in_force(ref, self.unset, proc)
        return self.unset if is_unset and self.unset is not None else found

    def shown(self, value: NativeValue) -> object:
        """What a cheap look must find while it holds this value; None: there is none."""
        return None

    def glance(self, tid: int) -> object:
        """What a cheap look finds; of a thread that has ended, something else than anything `shown`."""
        raise NotImplementedError(f"{self} of thread {tid}")


class GroupId(NamedTuple):
    """A cgroup. `inode`: of its directory; a group that is removed and made again under its name gets another
    (0: not known, as in old journals). `inhabitant`: the thread that is alone in it, for whose sake it is
    changed; None: it is changed for all who are in there."""

    directory: str
    inode: int
    inhabitant: VcpuId | None = None


Owner = VcpuId | GroupId
"""Who has a knob: a thread, or a group, which outlives its threads."""


class KnobRef(NamedTuple):
    """Which knob of whom. `path`: the file in the group's directory, the hierarchy's mount point for the
    group that a thread is in, else empty."""

    owner: Owner
    kind: NativeKnob
    path: str = ""

    @property
    def vcpu(self) -> VcpuId:
        """The thread, of which it is."""
        owner = self.owner
        assert isinstance(owner, VcpuId), "a knob of a thread"
        return owner

    @property
    def group(self) -> GroupId:
        """The group, of which it is."""
        owner = self.owner
        assert isinstance(owner, GroupId), "a knob of a group"
        return owner

    @property
    def sake(self) -> VcpuId | None:
        """The thread for whose sake it is changed, if it is a single one's."""
        owner = self.owner
        return owner if isinstance(owner, VcpuId) else owner.inhabitant

    @property
    def file(self) -> str:
        """Where a knob of a group is."""
        return f"{self.group.directory}/{self.path}"

    def __str__(self) -> str:
        whose = "" if self.sake is None else f" of thread {self.sake.tid} of process {self.sake.pid}"
        where = f" ({self.file})" if isinstance(self.owner, GroupId) else ""
        return f"{self.kind}{whose}{where}"


class Write(NamedTuple):
    """One intended write: the value found before our first write, and the value to be written now."""

    ref: KnobRef
    prior: NativeValue
    new: NativeValue


def alive(vcpu: VcpuId, proc: str = procfs.PROC) -> bool:
    """Is this still the thread that we met?"""
    try:
        return procfs.read_stat(vcpu.pid, vcpu.tid, proc).start_ticks == vcpu.start_ticks
    except ThreadGone:
        return False


def read(ref: KnobRef, proc: str = procfs.PROC) -> NativeValue:
    """The knob's present value. Raises ThreadGone, NotFair, or OSError."""
    _check(ref, proc)
    value = read_known(ref, proc)
    if ref.kind.lost_at_end and procfs.read_stat(ref.vcpu.pid, ref.vcpu.tid, proc).has_ended:
        raise ThreadGone(f"thread {ref.vcpu.tid} ended")
    return value


def write(ref: KnobRef, value: NativeValue, proc: str = procfs.PROC) -> None:
    """Set the knob. Raises ThreadGone, or OSError when the kernel refuses."""
    _check(ref, proc)
    write_known(ref, value, proc)


def put_back(ref: KnobRef, prior: NativeValue, proc: str = procfs.PROC) -> None:
    """`write` of what was there before us. Raises ThreadGone, NotFair, or OSError."""
    _check(ref, proc)
    try:
        ref.kind.give_back(ref, prior, proc)
    except OSError as error:
        raise _gone_or(error, ref) from error


def read_known(ref: KnobRef, proc: str = procfs.PROC) -> NativeValue:
    """`read` for a caller who has just proved the identity through a kept descriptor."""
    try:
        return ref.kind.read(ref, proc)
    except OSError as error:
        raise _gone_or(error, ref) from error


def write_known(
    ref: KnobRef, value: NativeValue, proc: str = procfs.PROC, descriptor: int | None = None
) -> None:
    """`write` for a caller who has just proved the identity through a kept descriptor.

    `descriptor`: the knob's file, kept open.
    """
    try:
        ref.kind.write(ref, value, proc, descriptor)
    except OSError as error:
        raise _gone_or(error, ref) from error


def in_force(ref: KnobRef, value: NativeValue, proc: str = procfs.PROC) -> NativeValue:
    """What the knob reads as while `value` is what was last asked for. Raises ThreadGone, or OSError."""
    return ref.kind.in_force(ref, value, proc)


def prior_of(ref: KnobRef, found: NativeValue, proc: str = procfs.PROC) -> NativeValue:
    """What to put back where `found` was there before us. Raises ThreadGone, or OSError."""
    return ref.kind.prior_of(ref, found, proc)


def no_value(kind: NativeKnob, value: NativeValue) -> OSError:
    """What to raise for a value that this kind of knob cannot hold."""
    return OSError(errno.EINVAL, f"{value!r} is no value for {kind}")


def clamped(value: KnobValue, bounds: tuple[int, int]) -> int:
    """A number as the kernel would cut it: beyond, it would not be read back as it was written."""
    assert isinstance(value, int), "a knob that is a number"
    return max(bounds[0], min(bounds[1], value))


def cores_of(value: NativeValue) -> frozenset[Core]:
    """The cores of a mask."""
    assert isinstance(value, tuple), "a knob that is a mask"
    return frozenset(map(Core, value))


def _check(ref: KnobRef, proc: str) -> None:
    """A group's row looks at its group itself."""
    if isinstance(ref.owner, VcpuId) and not alive(ref.owner, proc):
        raise ThreadGone(f"thread {ref.owner.tid} of process {ref.owner.pid} ended")


def _gone_or(error: OSError, ref: KnobRef) -> Exception:
    """ThreadGone where the error means that; else the error itself, naming the file if there is one."""
    if error.errno in _GONE:
        return ThreadGone(f"{ref}: {os.strerror(error.errno or 0)}")
    return error
