"""Changes become writes: check the thread, journal all of them at once, then write one after the other."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import NamedTuple

from ...knobs import knob
from ...knobs.groups import CGROUP, GroupKnob, knob_of_group
from ...knobs.knob import KnobRef, NativeKnob, NativeValue, Write
from ...knobs.masks import AFFINITY
from ...knobs.nice import NICE
from ...knobs.quotas import QUOTA
from ...linux import bandwidth, cgroupfs, procfs, schedattr
from ...linux.errors import ThreadGone
from ...model import Change, Core, Knob, Outcome, Result, VcpuId
from .ahead import WriteAhead
from .company import has_to_itself
from .interface import KernelInterface
from .own_groups import OwnGroups
from .put_back import PutBack
from .thread import HeldKnob, ManagedThread, WeightPlace, why_not
from .weight_watch import WeightWatch

Verdict = tuple[Outcome, str]

_NO_ROOM = (Outcome.REJECTED, "not written: the journal is full, and this knob is not in it")


class _SetByOthers(Exception):
    """What was decided on is not so any more."""


class _Step(NamedTuple):
    """One write, and the value that `restore` will aim at."""

    write: Write
    prior: NativeValue


class _Intent(NamedTuple):
    """One change that is going to be written, perhaps after a move into a group of our own."""

    place: int
    change: Change
    thread: ManagedThread
    steps: tuple[_Step, ...]


@dataclass(frozen=True, slots=True)
class Actuator:
    """Applies changes to managed threads."""

    journal: WriteAhead
    groups: OwnGroups | None
    hierarchy: cgroupfs.Hierarchy | None
    watch: WeightWatch
    put_back: PutBack
    dry_run: bool
    interface: KernelInterface
    proc: str = procfs.PROC

    def apply(self, changes: Sequence[Change], threads: Mapping[VcpuId, ManagedThread]) -> tuple[Result, ...]:
        """One result a change, in order."""
        results = [Result(change, Outcome.VANISHED, "not managed (any more)") for change in changes]
        verdicts: dict[VcpuId, Verdict | None] = {}
        intents: list[_Intent] = []
        for index, change in enumerate(changes):
            thread = threads.get(change.vcpu)
            if thread is None:
                continue
            if change.vcpu not in verdicts:
                verdicts[change.vcpu] = refusal(thread)
            planned = verdicts[change.vcpu] or self._plan(index, change, thread)
            if isinstance(planned, _Intent):
                intents.append(planned)
            else:
                results[index] = Result(change, *planned)
        for intent, verdict in zip(intents, self._carry_out(intents), strict=True):
            results[intent.place] = Result(intent.change, *verdict)
        return tuple(results)

    def _plan(self, index: int, change: Change, thread: ManagedThread) -> _Intent | Verdict:
        verdict = _knob_refusal(change, thread)
        if verdict is None and self.dry_run:
            verdict = (Outcome.DRY_RUN, "")
        if verdict is not None:
            return verdict
        kind = thread.kind_of(change.knob)
        if change.new == kind.put_back_by:
            return self._put_back(thread, kind)
        if kind not in thread.held and kind.taken(change.new) == change.prior != change.new:
            return Outcome.YIELDED, f"its {kind} is as far as the kernel goes already"
        try:
            if self._is_its_own(change, thread, kind):
                return self._put_back(thread, kind)
            moves = self._move_first(thread, thread.weight) if kind.of_group else ()
            return _Intent(index, change, thread, (*moves, self._step(change, thread, kind)))
        except ThreadGone as gone:
            return Outcome.VANISHED, str(gone)
        except _SetByOthers as theirs:
            return Outcome.YIELDED, str(theirs)
        except OSError as error:
            return Outcome.REJECTED, error.strerror or str(error)

    def _move_first(self, thread: ManagedThread, place: WeightPlace | None) -> tuple[_Step, ...]:
        """The move into a group of our own, if the weight needs one and the thread is not there yet."""
        if place is None or self.hierarchy is None or place.kind in thread.held:
            return ()
        if place.origin is None or self.groups is None:
            if not has_to_itself(self.hierarchy, place.group, thread.id, thread.terms, self.proc):
                thread.crowded = True
                thread.show(place.kind, None)
                thread.show(QUOTA, None)
                raise OSError(errno.EBUSY, f"is not alone in {place.group} any more")
            return ()
        if CGROUP in thread.held:
            return ()
        if not place.made:
            try:
                self.groups.make(place)
            except OSError:
                thread.show(place.kind, None)
                thread.show(QUOTA, None)
                raise
        return (_Step(Write(self.groups.move_ref(thread.id), place.origin, place.group), place.origin),)

    def _is_its_own(self, change: Change, thread: ManagedThread, kind: NativeKnob) -> bool:
        """Is that the mask that it has without us? Written as a list of CPUs it would keep the thread from
        those that its cpuset gets later, or that come online."""
        held = thread.held.get(kind)
        if kind is not AFFINITY or held is None or change.new != thread.vcpu.allowed:
            return False
        return knob.in_force(held.ref, held.prior, self.proc) == kind.native(change.new)

    def _put_back(self, thread: ManagedThread, kind: NativeKnob) -> Verdict:
        """As it was before us."""
        held = thread.held.get(kind)
        if held is None or self.put_back.restore_one(thread, held):
            return Outcome.APPLIED, ""
        return Outcome.REJECTED, f"its {kind} could not be put back"

    def _step(self, change: Change, thread: ManagedThread, kind: NativeKnob) -> _Step:
        new = kind.native(change.new)
        held = thread.held.get(kind)
        if held is not None:
            return _Step(Write(held.ref, held.prior, new), held.prior)
        ref = self._ref(thread, kind)
        found = knob.read_known(ref, self.proc)
        inherited = self.journal.inherited(ref, found)
        if inherited is not None:
            return _Step(Write(ref, found, new), inherited)
        _as_decided_on(thread, kind, found)
        prior = knob.prior_of(ref, found, self.proc)
        return _Step(Write(ref, prior, new), prior)

    def _ref(self, thread: ManagedThread, kind: NativeKnob) -> KnobRef:
        if not isinstance(kind, GroupKnob):
            return KnobRef(thread.id, kind)
        place = thread.weight
        assert place is not None, "only threads with a group have knobs of one"
        assert self.hierarchy is not None, "there are no groups without one"
        return knob_of_group(kind, kind.file_of(self.hierarchy, place.group), thread.id)

    def _carry_out(self, intents: list[_Intent]) -> list[Verdict]:
        if not intents:
            return []
        writes = [step.write for intent in intents for step in intent.steps]
        if crowded := self.journal.without_room(writes):
            fits = [crowded.isdisjoint(step.write.ref for step in intent.steps) for intent in intents]
            carried_out = iter(self._carry_out(list(compress(intents, fits))))
            return [next(carried_out) if one_fits else _NO_ROOM for one_fits in fits]
        try:
            self.journal.begin(writes)
        except OSError as error:
            return [(Outcome.REJECTED, f"nothing written: {error.strerror or error}")] * len(intents)
        written = self.interface.write_together(writes)
        verdicts = [self._write_all(intent, written) for intent in intents]
        self.watch.ours(intent.thread for intent in intents if intent.change.knob is Knob.WEIGHT)
        return verdicts

    def _write_all(self, intent: _Intent, written: Collection[Write]) -> Verdict:
        thread = intent.thread
        for at, step in enumerate(intent.steps):
            try:
                if step.write not in written:
                    self._write(thread, step.write)
            except (ThreadGone, OSError) as error:
                self._not_written(thread, [later.write.ref for later in intent.steps[at:]])
                if isinstance(error, ThreadGone):
                    return Outcome.VANISHED, str(error)
                self._undo_half(thread, step)
                return Outcome.REJECTED, error.strerror or str(error)
            ref, _, new = step.write
            known = thread.held.get(ref.kind)
            value = ref.kind.taken(intent.change.new) if ref.kind is not CGROUP else 0
            before = known.now if known else step.prior
            thread.hold(HeldKnob(ref, step.prior, new, before, value, ref.kind.shown(new)))
        return Outcome.APPLIED, ""

    def _write(self, thread: ManagedThread, write: Write) -> None:
        place = thread.weight
        descriptor = None
        if place is not None and write.ref.kind is place.kind:
            if place.descriptor is None:
                place.descriptor = _open_weight(place.file)
                self.watch.add(thread)
            descriptor = place.descriptor
        knob.write_known(write.ref, write.new, self.proc, descriptor)

    def _undo_half(self, thread: ManagedThread, step: _Step) -> None:
        """What was in force before a write that was refused half way is again."""
        ref, _, new = step.write
        known = thread.held.get(ref.kind)
        before = known.now if known else step.prior
        with contextlib.suppress(ThreadGone, OSError):  # the journal has it still: it is put back later
            if ref.kind.half_written(ref, before, [new], knob.read_known(ref, self.proc)):
                knob.write_known(ref, before, self.proc)

    def _not_written(self, thread: ManagedThread, refs: Sequence[KnobRef]) -> None:
        self.journal.rejected([ref for ref in refs if ref.kind in thread.held])
        self.journal.settle([ref for ref in refs if ref.kind not in thread.held])


_FIELDS = {Knob.WEIGHT: 0, Knob.RESCHEDULING_LATENCY: 1, Knob.AFFINITY: 2}
"""Where each knob is in a Knobs."""


def refusal(thread: ManagedThread) -> Verdict | None:
    """Why nothing of this thread may be written now, or None. The kept descriptor proves the identity."""
    try:
        os.pread(thread.kept.schedstat, 64, 0)
        policy = schedattr.policy_of(thread.vcpu.id.tid)
    except OSError:
        return Outcome.VANISHED, "the thread ended"
    reason = None if thread.may_be(policy) else why_not(policy, kernel_thread=False)
    return (Outcome.REJECTED, f"not touched: {reason}") if reason is not None else None


def _knob_refusal(change: Change, thread: ManagedThread) -> Verdict | None:
    """Why this knob may not be written with this value, or None."""
    if change.knob is Knob.CAP:
        can = thread.takes_caps and thread.weight is not None
        return None if can else (Outcome.YIELDED, "not ours to write")
    if thread.knobs[_FIELDS[change.knob]] is None:
        return Outcome.YIELDED, "not ours to write"
    if isinstance(change.new, frozenset) != (change.knob is Knob.AFFINITY):
        return Outcome.REJECTED, f"{change.new!r} is no value for {change.knob}"
    if isinstance(change.new, frozenset) and not (change.new and change.new <= thread.vcpu.allowed):
        return Outcome.REJECTED, "outside the cores that the thread may use"
    return None


def _as_decided_on(thread: ManagedThread, kind: NativeKnob, found: NativeValue) -> None:
    """What somebody set since we last looked is theirs: the policy has to decide anew, within it."""
    if kind is AFFINITY and isinstance(found, tuple):
        allowed = thread.within(map(Core, found))
        if thread.vcpu.allowed != allowed:
            thread.allow(allowed)
            raise OSError(errno.EBUSY, f"somebody else set its mask to {','.join(map(str, found))}")
    if kind is NICE and found != thread.nice:
        thread.leave_weight()
        raise OSError(errno.EBUSY, f"somebody else niced it to {found}")
    if kind is QUOTA and isinstance(found, str):
        known = thread.given_quota or bandwidth.NO_QUOTA
        if found != known and not found.startswith(f"{known} "):
            raise OSError(errno.EBUSY, f"somebody else gave {thread.group} another quota")
    if kind.serves not in (Knob.WEIGHT, Knob.RESCHEDULING_LATENCY):
        return
    is_in_ours = kind.of_group and thread.weight is not None and thread.weight.origin is not None
    if not is_in_ours and thread.model_of(kind, found) != thread.knobs[_FIELDS[kind.serves]]:
        thread.take_anew(kind.serves)
        raise _SetByOthers(f"somebody else set its {kind} to {found}")


def _open_weight(file: str) -> int:
    try:
        return os.open(file, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError as error:
        raise ThreadGone(f"{file} vanished") from error
