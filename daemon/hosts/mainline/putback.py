"""Knobs of managed threads go back to what they held before us, by the same code as after a crash."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ...linux import cgroupfs
from ...linux.errors import ThreadGone
from ...safety.codec import Bequest
from ...safety.kernel import Kernel
from ...safety.ledger import Outstanding
from ...safety.restore import put_back
from ..host import Restored
from . import units
from .adopt import weight_shown
from .ahead import WriteAhead
from .owngroups import OwnGroups
from .thread import Held, ManagedThread


@dataclass(frozen=True, slots=True)
class PutBack:
    """Compare-and-restore for living threads, and what is left to do for dead ones."""

    journal: WriteAhead
    groups: OwnGroups | None
    kernel: Kernel

    def restore(self, threads: Sequence[ManagedThread], bequests: Sequence[Bequest] = ()) -> Restored:
        """Put back all that these threads hold. What could not be put back stays held."""
        if self.groups is not None:
            self.groups.sweep()
        outstanding = tuple(
            Outstanding(held.ref, held.prior, (held.now, held.before))
            for thread in threads
            for held in thread.held.values()
        )
        directories = tuple(self._directories(threads))
        if not outstanding and not directories:
            return Restored(0, (), 0, ())
        restored = put_back(outstanding, directories, bequests, self.kernel)
        for thread in threads:
            held = tuple(thread.held.values())
            self._settle(thread, [one for one in held if not (restored.failed and self._is_ours(one))])
        return restored

    def restore_one(self, thread: ManagedThread, held: Held) -> None:
        """Put back one knob of a thread that stays managed."""
        outstanding = Outstanding(held.ref, held.prior, (held.now, held.before))
        put_back((outstanding,), (), (), self.kernel)
        self._settle(thread, (held,))

    def bury(self, thread: ManagedThread) -> None:
        """The thread ended. Its slice and mask went with it; a group that it was alone in may live on."""
        place = thread.weight
        if place is not None:
            held = thread.held.get(place.kind)
            if held is not None and place.origin is None and place.descriptor is not None:
                _weight_back(place.descriptor, held)
            if place.origin is not None and place.made and self.groups is not None:
                self.groups.remove(place)
        self.journal.settle(thread.refs())
        thread.held.clear()

    def _directories(self, threads: Iterable[ManagedThread]) -> Iterable[str]:
        for thread in threads:
            place = thread.weight
            if self.groups is not None and place is not None and place.origin is not None and place.made:
                yield self.groups.directory(place)

    def _settle(self, thread: ManagedThread, done: Sequence[Held]) -> None:
        self.journal.settle([held.ref for held in done])
        for held in done:
            thread.drop(held.ref.kind)
            self._show_prior(thread, held)
        place = thread.weight
        if place is None or self.groups is None or place.origin is None or not place.made:
            return
        if not os.path.isdir(self.groups.directory(place)):
            close_weight(thread)
            self.groups.forget(place)
            thread.show(place.kind, weight_shown(place))

    def _is_ours(self, held: Held) -> bool:
        """Does the kernel still hold what we wrote? Then it could not be put back."""
        try:
            return self.kernel.read(held.ref) == held.now
        except (ThreadGone, OSError):
            return False

    def _show_prior(self, thread: ManagedThread, held: Held) -> None:
        kind = held.ref.kind
        try:
            present = self.kernel.read(held.ref) if kind in units.MODEL_KNOB else None
        except (ThreadGone, OSError):
            return
        if present is not None:
            thread.show(kind, thread.model_of(kind, present))


def close_weight(thread: ManagedThread) -> None:
    """Let the kept weight file go."""
    if thread.weight is not None and thread.weight.descriptor is not None:
        os.close(thread.weight.descriptor)
        thread.weight.descriptor = None


def _weight_back(descriptor: int, held: Held) -> None:
    """The kept descriptor belongs to the group itself, whoever lives there now: ENODEV once it is gone."""
    try:
        if int(os.pread(descriptor, 24, 0)) == held.now and isinstance(held.prior, int):
            cgroupfs.write_weight(held.ref.path, held.prior, descriptor)
    except OSError:
        return
