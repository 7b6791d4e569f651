"""What we still hold of threads that we have let go: seen to in turn, until they hold nothing of ours.

A knob can fail to go back: a slice while its thread is real-time (the kernel neither shows nor takes it,
and keeps it for the day that the thread is fair again), a mask while its CPUs are offline. Until it is back
its thread is not managed: a value of ours would pass for the one before us (docs/decisions/0034-custody.md).
"""

from __future__ import annotations

from collections.abc import Iterable

from ...knobs.knob import KnobRef
from ...safety.journal.ledger import Outstanding
from ...safety.kernel import Kernel
from ...safety.restore import Verdicts, put_back_each
from .ahead import WriteAhead

SEEN_TO_AT_ONCE = 16
"""Threads a look: 200 a second at 80 ms, for 0.3 ms a look."""

Numbers = tuple[int, int]

NOBODY: Numbers = (0, 0)
"""Whose a group's knob is that was changed for all who are in there."""


class Custody:
    """By the (pid, tid) of its thread, whatever the journal holds of threads that are not managed."""

    def __init__(self, journal: WriteAhead, kernel: Kernel) -> None:
        self._journal = journal
        self._kernel = kernel
        self._held: dict[Numbers, tuple[Outstanding, ...]] = {}
        self._turn = 0
        self.take(journal.outstanding())

    def take(self, outstanding: Iterable[Outstanding]) -> None:
        """Their threads are managed no longer."""
        for one in outstanding:
            numbers = _numbers(one.ref)
            self._held[numbers] = (*self._held.get(numbers, ()), one)

    def outstanding(self) -> tuple[Outstanding, ...]:
        """All that is held."""
        return tuple(one for each in self._held.values() for one in each)

    def redeem(self, numbers: Numbers) -> str | None:
        """Put back what is held of whoever had these numbers; why something still is, or None."""
        if numbers not in self._held:
            return None
        verdicts = self._put_back(self._held[numbers]).summary()
        return next(iter((*verdicts.failed, *verdicts.waiting)), None)

    def see_to_some(self) -> None:
        """Try again with a few; what ended is settled."""
        if not self._held:
            return
        held = tuple(self._held.values())
        start = self._turn * SEEN_TO_AT_ONCE % len(held)
        self._turn += 1
        self._put_back(one for each in held[start : start + SEEN_TO_AT_ONCE] for one in each)

    def settle(self, done: Verdicts) -> None:
        """Some of it is back."""
        settled = set(done.settled())
        self._journal.settle(settled)
        for numbers in {_numbers(ref) for ref in settled} & self._held.keys():
            rest = tuple(one for one in self._held[numbers] if one.ref not in settled)
            if rest:
                self._held[numbers] = rest
            else:
                del self._held[numbers]

    def _put_back(self, outstanding: Iterable[Outstanding]) -> Verdicts:
        done = put_back_each(outstanding, (), (), self._kernel)
        self.settle(done)
        return done


def _numbers(ref: KnobRef) -> Numbers:
    return NOBODY if ref.sake is None else (ref.sake.pid, ref.sake.tid)
