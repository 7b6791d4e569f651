"""What the host asks of the journal: everything before the write, nothing after it is needed."""

from __future__ import annotations

import errno
from collections.abc import Iterable, Sequence
from typing import Protocol

from ...knobs import knob
from ...knobs.knob import KnobRef, NativeValue, Write
from ...linux.errors import ThreadGone
from ...safety.journal.codec import Bequest
from ...safety.journal.ledger import Outstanding


class WriteAhead(Protocol):
    """`dasec.safety.journal.journal.Journal`, or a stand-in of tests. Methods that raise, raise OSError."""

    def without_room(self, writes: Sequence[Write]) -> frozenset[KnobRef]:
        """The knobs of these writes that there is no room for: enter the others only."""

    def begin(self, writes: Sequence[Write]) -> None:
        """Enter these writes. May raise: then none of them may be made."""

    def rejected(self, refs: Iterable[KnobRef]) -> None:
        """The kernel refused the newest value of these knobs. Never raises."""

    def settle(self, refs: Iterable[KnobRef]) -> None:
        """These knobs are not ours any more. Never raises."""

    def group_made(self, path: str) -> None:
        """This cgroup directory is about to be made. May raise: then it must not be made."""

    def group_gone(self, path: str) -> None:
        """This cgroup directory was removed. Never raises."""

    def inherited(self, ref: KnobRef, found: NativeValue) -> NativeValue | None:
        """The true prior of a newcomer's knob that was born with a value of ours, else None."""

    def outstanding(self) -> tuple[Outstanding, ...]:
        """Every knob that we may have written and have not settled."""

    def groups(self) -> tuple[str, ...]:
        """Every cgroup directory that is ours."""

    def bequests(self) -> tuple[Bequest, ...]:
        """Values of ours that threads which we never held may have been born with."""


def write_ahead(journal: WriteAhead, write: Write, proc: str) -> None:
    """Enter one write and make it; where that fails nothing is entered any more. Raises ThreadGone, or
    OSError."""
    if journal.without_room((write,)):
        raise OSError(errno.ENOSPC, "the journal is full")
    journal.begin((write,))
    try:
        knob.write(write.ref, write.new, proc)
    except (ThreadGone, OSError):
        journal.settle((write.ref,))
        raise
