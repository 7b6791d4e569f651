"""The journal of a daemon that writes nothing: there is nothing to enter, and it makes sure of that."""

from __future__ import annotations

import errno
from collections.abc import Iterable, Sequence

from ...knobs.knob import KnobRef, NativeValue, Write
from .codec import Bequest
from .ledger import Outstanding


class NoJournal:
    """Has the methods that a host calls; refuses every write."""

    def without_room(self, writes: Sequence[Write]) -> frozenset[KnobRef]:  # noqa: ARG002  # as in WriteAhead
        """`begin` refuses all of them anyway."""
        return frozenset()

    def begin(self, writes: Sequence[Write]) -> None:
        """Refuse."""
        raise OSError(errno.EROFS, "dry run: nothing may be written")

    def group_made(self, path: str) -> None:
        """Refuse."""
        raise OSError(errno.EROFS, "dry run: no group may be made")

    def rejected(self, refs: Iterable[KnobRef]) -> None:
        """Nothing was entered."""

    def settle(self, refs: Iterable[KnobRef]) -> None:
        """Nothing was entered."""

    def group_gone(self, path: str) -> None:
        """Nothing was entered."""

    def inherited(self, ref: KnobRef, found: NativeValue) -> NativeValue | None:
        """Nobody was born with a value of ours."""
        return None

    def outstanding(self) -> tuple[Outstanding, ...]:
        """Nothing was written."""
        return ()

    def groups(self) -> tuple[str, ...]:
        """None was made."""
        return ()

    def bequests(self) -> tuple[Bequest, ...]:
        """None."""
        return ()
