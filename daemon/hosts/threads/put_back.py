"""Knobs of managed threads go back to what they held before us, by the same code as after a crash."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ...knobs.knob import Write
from ...linux.errors import ThreadGone
from ...model import THREAD_KNOBS, Restored
from ...safety.journal.codec import Bequest
from ...safety.journal.ledger import Outstanding
from ...safety.kernel import Kernel
from ...safety.restore import Verdicts, put_back_each
from .adopt import weight_shown
from .ahead import WriteAhead
from .custody import Custody
from .own_groups import OwnGroups
from .thread import HeldKnob, ManagedThread


@dataclass(frozen=True, slots=True)
class PutBack:
    """Compare-and-restore for living threads, and what is left to do for dead ones."""

    journal: WriteAhead
    groups: OwnGroups | None
    kernel: Kernel
    custody: Custody

    def restore(self, threads: Sequence[ManagedThread]) -> Restored:
        """Put back all that these threads hold. What could not be put back stays held."""
        return self._restore(threads, (), (), ())

    def restore_all(self, threads: Sequence[ManagedThread]) -> Restored:
        """The same for all threads that there are, those in custody, the heirs of all of them, and groups
        that could not be removed before."""
        left = () if self.groups is None else self.groups.lingering()
        restored = self._restore(threads, self.custody.outstanding(), self.journal.bequests(), left)
        if self.groups is not None:
            self.groups.sweep()  # forgets those that are gone now
        return restored

    def restore_one(self, thread: ManagedThread, held: HeldKnob) -> bool:
        """Put back one knob of a thread that stays managed. False: it stays held."""
        self._settle((thread,), put_back_each((held.outstanding(),), (), (), self.kernel))
        return held.ref.kind not in thread.held

    def bury(self, thread: ManagedThread) -> None:
        """The thread ended. Its slice and mask went with it; a group that it was alone in may live on."""
        self._settle((thread,), put_back_each(thread.outstanding(), (), (), self.kernel))
        place = thread.weight
        if place is not None and place.origin is not None and place.made and self.groups is not None:
            close_weight(thread)
            self.groups.remove(place, frozenset({thread.id.pid}))

    def hand_over(self, ended: ManagedThread, siblings: Sequence[ManagedThread]) -> None:
        """A main thread ended, and one of these siblings has its number (safety/takeover.py): what we held of
        that sibling goes back there, and of the main thread nothing is left to put back."""
        brought = [
            one._replace(ref=one.ref._replace(owner=ended.id))
            for sibling in siblings
            for one in sibling.outstanding()
            if not one.ref.kind.of_group
        ]
        for one in ended.outstanding():
            if not one.ref.kind.of_group:
                self.journal.settle((one.ref,))
                ended.drop(one.ref.kind)
        settled = set(put_back_each(brought, (), (), self.kernel).settled())
        still = [one for one in brought if one.ref not in settled]
        with contextlib.suppress(OSError):  # without an entry it is put back by this daemon or not at all
            self.journal.begin([Write(one.ref, one.prior, one.ours[0]) for one in still])
        self.custody.take(still)

    def _restore(
        self,
        threads: Sequence[ManagedThread],
        others: Sequence[Outstanding],
        bequests: Sequence[Bequest],
        left: Sequence[str],
    ) -> Restored:
        if self.groups is not None:
            self.groups.sweep()
        outstanding = (*(one for thread in threads for one in thread.outstanding()), *others)
        directories = (*self._directories(threads), *left)
        if not outstanding and not directories:
            return Restored(0, (), 0, ())
        done = put_back_each(outstanding, directories, bequests, self.kernel)
        self._settle(threads, done)
        self.custody.settle(done)
        return done.summary()

    def _directories(self, threads: Iterable[ManagedThread]) -> Iterable[str]:
        for thread in threads:
            place = thread.weight
            if self.groups is not None and place is not None and place.origin is not None and place.made:
                yield self.groups.directory(place)

    def _settle(self, threads: Iterable[ManagedThread], done: Verdicts) -> None:
        settled = set(done.settled())
        self.journal.settle(settled)
        for thread in threads:
            for held in tuple(thread.held.values()):
                if held.ref in settled:
                    thread.drop(held.ref.kind)
                    self._show_prior(thread, held)
            self._forget_group(thread)

    def _forget_group(self, thread: ManagedThread) -> None:
        """Our own, if it is gone; while its thread is still in it, it will be removed later."""
        place = thread.weight
        if place is None or self.groups is None or place.origin is None or not place.made:
            return
        if not os.path.isdir(self.groups.directory(place)):
            close_weight(thread)
            self.groups.forget(place)
            thread.show(place.kind, weight_shown(place))

    def _show_prior(self, thread: ManagedThread, held: HeldKnob) -> None:
        kind = held.ref.kind
        try:
            present = self.kernel.read(held.ref) if kind.serves in THREAD_KNOBS else None
        except (ThreadGone, OSError):
            return
        if present is not None:
            thread.show(kind, thread.model_of(kind, present))


def close_weight(thread: ManagedThread) -> None:
    """Let the kept weight file go."""
    if thread.weight is not None and thread.weight.descriptor is not None:
        os.close(thread.weight.descriptor)
        thread.weight.descriptor = None
