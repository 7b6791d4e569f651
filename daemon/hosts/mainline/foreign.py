"""Did somebody else write a knob that we hold? Found by reading back; answered as configured.

Slices and masks of threads that were awake are read back each period, and those of sleepers
in turn (a sleeper's knobs matter when it wakes, and then it is not a sleeper). Weight files
are watched by inotify: an unwritten file is not read.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ...linux import affinity, cpus, knob, procfs, schedattr
from ...linux.errors import ThreadGone
from ...linux.knob import KnobRef, NativeKnob, NativeValue, Write
from . import units
from .ahead import WriteAhead
from .thread import Held, ManagedThread, OnForeignWrite
from .weightwatch import WeightWatch


@dataclass(frozen=True, slots=True)
class ReadBack:
    """Compares held knobs with the kernel's."""

    journal: WriteAhead
    answer: OnForeignWrite
    watch: WeightWatch
    notices: list[str]
    proc: str = procfs.PROC

    def look_at(self, threads: Iterable[ManagedThread]) -> None:
        """Slices and masks of these threads."""
        slice_of, mask = schedattr.slice_of, affinity.mask
        for thread in threads:
            if thread.slice_held is not None and slice_of(thread.vcpu.id.tid) != thread.slice_held:
                self._compare(thread, NativeKnob.SLICE)
            if thread.mask_held is not None and mask(thread.vcpu.id.tid) != thread.mask_held:
                self._compare(thread, NativeKnob.AFFINITY)

    def look_at_weights(self) -> None:
        """Weights that somebody wrote to since the last look."""
        for thread in self.watch.suspects():
            if thread.weight is not None:
                self._compare(thread, thread.weight.kind)

    def look_closely(self, thread: ManagedThread) -> None:
        """Every held knob of one thread."""
        for kind in tuple(thread.held):
            self._compare(thread, kind)

    def _compare(self, thread: ManagedThread, kind: NativeKnob) -> None:
        held = thread.held.get(kind)
        if held is None:
            return
        try:
            os.pread(thread.kept.schedstat, 1, 0)  # proves that it lives: a fifth of opening its stat file
            present = knob.read_known(held.ref, self.proc)
        except (ThreadGone, OSError):
            return
        if present == held.now or (kind is NativeKnob.AFFINITY and _only_cpus_went(thread, held, present)):
            return
        if kind is NativeKnob.SLICE and schedattr.get(thread.id.tid).policy not in schedattr.FAIR_POLICIES:
            return
        self._answer(thread, held, present)

    def _answer(self, thread: ManagedThread, held: Held, present: NativeValue) -> None:
        kind = held.ref.kind
        self.notices.append(
            f"{kind} of {thread.vcpu.name!r} (thread {thread.id.tid}): somebody else wrote {present} "
            f"over our {held.now}: {_SAID[self.answer]}"
        )
        self.journal.settle((held.ref,))
        thread.drop(kind)
        if self.answer is OnForeignWrite.REAPPLY:
            self._reapply(thread, held, present)
        elif self.answer is OnForeignWrite.ALERT and kind in units.MODEL_KNOB:
            thread.show(kind, thread.model_of(kind, present))
        else:
            self._yield(thread, kind)

    def _reapply(self, thread: ManagedThread, held: Held, present: NativeValue) -> None:
        """Ours again; and what they wrote is what `restore` gives back."""
        try:
            self.journal.begin((Write(held.ref, present, held.now),))
        except OSError:
            self._yield(thread, held.ref.kind)
            return
        try:
            knob.write(held.ref, held.now, self.proc)
            kept = knob.read(held.ref, self.proc) == held.now
        except (ThreadGone, OSError):
            kept = False
        if kept:
            thread.hold(held._replace(prior=present, before=present))
        else:
            self.journal.settle((held.ref,))
            self._yield(thread, held.ref.kind)

    def _yield(self, thread: ManagedThread, kind: NativeKnob) -> None:
        if kind is NativeKnob.CGROUP and thread.weight is not None:
            kind = thread.weight.kind
            left: KnobRef | None = thread.held[kind].ref if kind in thread.held else None
            if left is not None:
                self.journal.settle((left,))
                thread.drop(kind)
        thread.show(kind, None)


_SAID: Mapping[OnForeignWrite, str] = {
    OnForeignWrite.YIELD: "left to them from now on",
    OnForeignWrite.REAPPLY: "ours written again",
    OnForeignWrite.ALERT: "taken as it is; the policy may change it again",
}


def _only_cpus_went(thread: ManagedThread, held: Held, present: NativeValue) -> bool:
    """Is the mask ours but for CPUs that are offline now? Then expect it so until they come back."""
    if not isinstance(held.now, tuple) or not isinstance(present, tuple):
        return False
    online = cpus.online()
    if present != tuple(cpu for cpu in held.now if cpu in online):
        return False
    thread.mask_held = affinity.mask_of(present, affinity.KERNEL_BYTES)
    return True
