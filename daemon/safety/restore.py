"""Compare and put back: the prior value returns where the kernel still holds one of ours.

Whatever somebody else has written since is left alone. The order of kinds is that of their
table (knobs/table.py); groups of ours are removed when the threads in them have returned to
their own. Doing all of it twice changes nothing the second time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from ..knobs import table
from ..knobs.knob import KnobRef
from ..model import Restored
from .fate import OPEN, Fate, KnobFate, judge
from .groups import GroupVerdict, Kinship, remove_groups, sweep_probes
from .journal.codec import Bequest
from .journal.directory import JournalBusy, Notice
from .journal.journal import DIRECTORY, Journal, peek
from .journal.ledger import Outstanding
from .kernel import Kernel, LinuxKernel
from .newcomers import disinherit
from .takeover import overtaken

_LINUX = LinuxKernel()


class Verdicts(NamedTuple):
    """What became of each knob, and of each group."""

    knobs: Sequence[KnobFate]
    groups: Sequence[GroupVerdict] = ()

    def settled(self) -> Iterator[KnobRef]:
        """The knobs that hold nothing of ours any more."""
        return (one.ref for one in self.knobs if one.fate not in OPEN)

    def summary(self) -> Restored:
        """In numbers, and in words where there is something to say."""
        fates = Counter(one.fate for one in self.knobs)
        return Restored(
            put_back=fates[Fate.PUT_BACK],
            left_alone=self._said(Fate.LEFT_ALONE),
            vanished=fates[Fate.VANISHED],
            failed=self._said(Fate.FAILED),
            waiting=self._said(Fate.WAITING),
        )

    def _said(self, fate: Fate) -> tuple[str, ...]:
        both: tuple[KnobFate | GroupVerdict, ...] = (*self.knobs, *self.groups)
        return tuple(one.detail for one in both if one.fate is fate)


def put_back(
    outstanding: Iterable[Outstanding],
    groups: Iterable[str],
    bequests: Sequence[Bequest] = (),
    kernel: Kernel = _LINUX,
) -> Restored:
    """Put these knobs back, and remove these cgroup directories. Idempotent, never raises."""
    return put_back_each(outstanding, groups, bequests, kernel).summary()


def put_back_each(
    outstanding: Iterable[Outstanding], groups: Iterable[str], bequests: Sequence[Bequest], kernel: Kernel
) -> Verdicts:
    """The same, told one by one."""
    knobs = tuple(outstanding)
    verdicts = [*overtaken(_judge(knobs, kernel, after_groups=False), knobs, kernel)]
    verdicts = _disinherit(verdicts, bequests, kernel)
    pids = frozenset(sake.pid for one in knobs if (sake := one.ref.sake) is not None)
    removed = remove_groups(tuple(groups), Kinship(pids, bequests, kernel), kernel)
    verdicts += _judge(knobs, kernel, after_groups=True)
    return Verdicts(verdicts, removed)


def put_all_back(journal: Journal, kernel: Kernel = _LINUX) -> Restored:
    """Put back everything that the journal holds, and settle what holds nothing of ours any more."""
    done = put_back_each(journal.outstanding(), journal.groups(), journal.bequests(), kernel)
    journal.settle(done.settled())
    for group in done.groups:
        if group.fate is Fate.PUT_BACK:
            journal.group_gone(group.path)
    return done.summary()


def recover(
    directory: Path = DIRECTORY, *, wait_s: float = 2.0, at: int | None = None
) -> tuple[Restored, tuple[Notice, ...]]:
    """Put back whatever a dead daemon left: for a daemon that starts, the keeper, `dasec restore`.
    `at`: a descriptor of the directory, which counts and not the path.

    Raises JournalBusy while another process has the journal, or OSError.
    """
    journal, notices = Journal.open(directory, wait_s=wait_s, create=False, at=at)
    try:
        restored = put_all_back(journal)
        if journal.unreadable:
            restored, notices = _kept(restored, notices)
    finally:
        journal.close()
    sweep_probes()  # last: what is left of a probe is in nobody's way
    return restored, notices


def restore(directory: Path = DIRECTORY, *, force: bool = False) -> tuple[Restored, tuple[Notice, ...]]:
    """`dasec restore`: as `recover`; with `force` also under a living daemon, which then sees its
    knobs changed by somebody else and does what it is configured to do (by default: yields)."""
    try:
        return recover(directory)
    except JournalBusy:
        if not force:
            raise
    ledger, notices, alien = peek(directory)
    restored = put_back(ledger.outstanding(), (), ledger.bequests())
    return _kept(restored, notices) if alien else (restored, notices)


def _kept(restored: Restored, notices: tuple[Notice, ...]) -> tuple[Restored, tuple[Notice, ...]]:
    """What a journal holds that stays as it is, is not put back; that is said once."""
    return replace(restored, failed=(*restored.failed, *map(str, notices))), ()


def _disinherit(verdicts: list[KnobFate], bequests: Sequence[Bequest], kernel: Kernel) -> list[KnobFate]:
    try:
        return disinherit(verdicts, bequests, kernel)
    except Exception as error:  # groups are still to be removed, and the rest to be settled
        why = f"threads born with values of ours: {error or type(error).__name__}"
        return [*verdicts, *(KnobFate(one.ref, Fate.FAILED, why) for one in verdicts[:1])]


def _judge(outstanding: Sequence[Outstanding], kernel: Kernel, *, after_groups: bool) -> list[KnobFate]:
    """Kind by kind, in the order of their table."""
    kinds = [kind for kind in table.TABLE if kind.after_groups is after_groups]
    return [judge(one, kernel) for kind in kinds for one in outstanding if one.ref.kind is kind]
