"""Did somebody else write a knob that we hold? Found by reading back; answered as configured.

Slices and masks of threads that were awake are read back each period, and those of sleepers
in turn (a sleeper's knobs matter when it wakes, and then it is not a sleeper). Weight files
are watched by inotify: an unwritten file is not read.

A mask of ours that a cpuset or an offline CPU cuts is still ours: the kernel keeps what was
asked for, and it is in force again as soon as they let it. Whoever writes by hand exactly what
is left of ours cannot be told from that (docs/decisions/0035-masks-and-births.md).
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from ...knobs import knob, masks
from ...knobs.groups import CGROUP
from ...knobs.knob import KnobRef, NativeKnob, NativeValue, Write
from ...knobs.masks import AFFINITY
from ...knobs.nice import NICE
from ...knobs.quotas import QUOTA
from ...linux import procfs, schedattr
from ...linux.errors import ThreadGone
from ...model import THREAD_KNOBS, Core, Knob
from ...safety.fate import shown
from ..host import OnForeignWrite
from .ahead import WriteAhead
from .notices import Notices
from .thread import HeldKnob, ManagedThread
from .weight_watch import WeightWatch

_CPUSET_CHANGES_WITHIN_S = 0.002
"""Once a look, and only where a mask is strange."""


@dataclass(frozen=True, slots=True)
class ReadBack:
    """Compares held knobs with the kernel's."""

    journal: WriteAhead
    answer: OnForeignWrite
    watch: WeightWatch
    notices: Notices
    proc: str = procfs.PROC

    def look_at(self, threads: Iterable[ManagedThread]) -> bool:
        """What can be told cheaply of these threads. True: some may use other cores than before."""
        differ = [
            (thread, kind)
            for thread in threads
            for kind, shown in thread.glanced.items()
            if kind.glance(thread.vcpu.id.tid) != shown
        ]
        for thread, kind in differ:
            if kind is not AFFINITY:
                self._compare(thread, kind)
        return self._look_at_masks([thread for thread, kind in differ if kind is AFFINITY])

    def look_at_weights(self) -> None:
        """Weights that somebody wrote to since the last look."""
        for thread in self.watch.suspects():
            if thread.weight is not None:
                self._compare(thread, thread.weight.kind)

    def look_at_quotas(self, threads: Iterable[ManagedThread]) -> None:
        """Quotas that somebody wrote to since the last look."""
        for thread in threads:
            self._compare(thread, QUOTA)

    def look_closely(self, thread: ManagedThread) -> bool:
        """Every held knob of one thread. True: it may use other cores than before."""
        for kind in tuple(thread.held):
            if kind is not AFFINITY:
                self._compare(thread, kind)
        return AFFINITY in thread.held and self._look_at_masks((thread,))

    def _look_at_masks(self, threads: Sequence[ManagedThread]) -> bool:
        """The kernel shows a changed cpuset before it has changed the masks of all threads in it, so what
        looks strange is looked at twice."""
        before = [thread.vcpu.allowed for thread in threads]
        strange = [thread for thread in threads if not self._is_ours(thread)]
        if strange:
            time.sleep(_CPUSET_CHANGES_WITHIN_S)
        for thread in strange:
            if not self._is_ours(thread):
                self._compare(thread, AFFINITY)
        return [thread.vcpu.allowed for thread in threads] != before

    def _is_ours(self, thread: ManagedThread) -> bool:
        """Is the mask ours, or what its cpuset and the CPUs that are online leave of it? Then that is what to
        expect from now on."""
        held = thread.held[AFFINITY]
        try:
            os.pread(thread.kept.schedstat, 1, 0)
            present = knob.read_known(held.ref, self.proc)
            allowed = masks.allowed_now(held.ref, self.proc)
        except (ThreadGone, OSError):
            return True  # the next sample loses it
        assert isinstance(held.now, tuple), "it is a mask"
        assert isinstance(held.prior, tuple), "it is a mask"
        assert isinstance(present, tuple), "it is a mask"
        if present not in (held.now, masks.cut(held.now, allowed)):
            return False
        own = masks.cut(held.prior, allowed)
        if set(present).isdisjoint(held.now) and self._hand_back(thread, held):
            thread.allow(thread.within(map(Core, own)))
        else:
            thread.expect_mask(present, own)
        return True

    def _hand_back(self, thread: ManagedThread, held: HeldKnob) -> bool:
        """Nothing of our mask is in force. A CPU that goes offline makes the kernel forget it altogether
        (select_fallback_rq()), and nobody could tell later what had been before it: put it back now."""
        try:
            knob.write_known(held.ref, held.prior, self.proc)
        except (ThreadGone, OSError):
            return False  # nothing of the prior mask would be in force either
        self.notices.say(
            f"workload {thread.workload}: masks that a cpuset or offline CPUs leave nothing of",
            f"affinity of {thread.vcpu.name!r} (thread {thread.id.tid}): its cpuset, or what is online, "
            f"leaves nothing of our {shown(held.now)}: put back",
        )
        self.journal.settle((held.ref,))
        thread.drop(AFFINITY)
        return True

    def _compare(self, thread: ManagedThread, kind: NativeKnob) -> None:
        held = thread.held.get(kind)
        if held is None:
            return
        try:
            os.pread(thread.kept.schedstat, 1, 0)  # proves that it lives: a fifth of opening its stat file
            present = knob.read_known(held.ref, self.proc)
            is_fair = schedattr.policy_of(thread.id.tid) in schedattr.FAIR_POLICIES
        except (ThreadGone, OSError):
            return
        if present == held.now or (kind.fair_only and not is_fair):
            return
        self._answer(thread, held, self._meant(held, present))

    def _meant(self, held: HeldKnob, present: NativeValue) -> NativeValue:
        """What they meant is in force from now on, if the kernel takes it."""
        meant = held.ref.kind.meant(held.prior, held.outstanding().ours, present)
        if meant != present:
            with suppress(ThreadGone, OSError):
                knob.write_known(held.ref, meant, self.proc)
                return meant
        return present

    def _answer(self, thread: ManagedThread, held: HeldKnob, present: NativeValue) -> None:
        kind = held.ref.kind
        is_given_anew = kind is QUOTA and bool(thread.given_quota)
        said = _GIVEN_ANEW if is_given_anew else _SAID[self.answer]
        self.notices.say(
            f"workload {thread.workload}: {kind} written by somebody else, {said}",
            f"{kind} of {thread.vcpu.name!r} (thread {thread.id.tid}): somebody else wrote "
            f"{shown(present)} over our {shown(held.now)}: {said}",
        )
        self.journal.settle((held.ref,))
        thread.drop(kind)
        if is_given_anew:
            return
        if self.answer is OnForeignWrite.REAPPLY:
            self._reapply(thread, held, present)
        elif self.answer is OnForeignWrite.ALERT and kind.serves in THREAD_KNOBS:
            thread.show(kind, thread.model_of(kind, present))
            if kind is NICE and isinstance(present, int):
                thread.nice = present
        else:
            self._yield(thread, kind)

    def _reapply(self, thread: ManagedThread, held: HeldKnob, present: NativeValue) -> None:
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
        if kind is CGROUP and thread.weight is not None:
            thread.show(QUOTA, None)
            kind = thread.weight.kind
            left: KnobRef | None = thread.held[kind].ref if kind in thread.held else None
            if left is not None:
                self.journal.settle((left,))
                thread.drop(kind)
        if kind.serves is Knob.WEIGHT:
            thread.leave_weight()
        else:
            thread.show(kind, None)


_GIVEN_ANEW = "from now on that is the quota that it was given"
"""Who limits each vCPU says how much it may use, not who writes the file (docs/decisions/0054-loans.md)."""

_SAID: Mapping[OnForeignWrite, str] = {
    OnForeignWrite.YIELD: "left to them from now on",
    OnForeignWrite.REAPPLY: "ours written again",
    OnForeignWrite.ALERT: "taken as it is; the policy may change it again",
}
