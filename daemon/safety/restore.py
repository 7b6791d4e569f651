"""Compare and put back: the prior value returns where the kernel still holds one of ours.

Whatever somebody else has written since is left alone. Slices and masks go first, they
are per thread; then weights; then threads return to their groups; then groups of ours are
removed; last, v2 controllers that only those groups needed are handed back. Doing all of
it twice changes nothing the second time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from ..hosts.host import Restored
from ..linux.knob import NativeKnob
from .codec import Bequest
from .directory import JournalBusy, Notice
from .groups import GroupVerdict, Kinship, remove_groups, sweep_probes
from .journal import DIRECTORY, Journal, peek
from .kernel import Kernel, LinuxKernel
from .knobs import Fate, Verdict, judge
from .ledger import Outstanding
from .newcomers import disinherit

_THREADS_FIRST = (
    NativeKnob.SLICE,
    NativeKnob.GRANULARITY,
    NativeKnob.AFFINITY,
    NativeKnob.THREAD_WEIGHT,
    NativeKnob.WEIGHT_V1,
    NativeKnob.WEIGHT_V2,
    NativeKnob.CGROUP,
)
_AFTER_GROUPS = (NativeKnob.CONTROLLERS,)

_LINUX = LinuxKernel()


def put_back(
    outstanding: Iterable[Outstanding],
    groups: Iterable[str],
    bequests: Sequence[Bequest] = (),
    kernel: Kernel = _LINUX,
) -> Restored:
    """Put these knobs back, and remove these cgroup directories. Idempotent, never raises."""
    return _summary(*_put_back(tuple(outstanding), tuple(groups), bequests, kernel))


def put_all_back(journal: Journal, kernel: Kernel = _LINUX) -> Restored:
    """Put back everything that the journal holds, and settle all of it but failures."""
    knobs, groups = _put_back(journal.outstanding(), journal.groups(), journal.bequests(), kernel)
    journal.settle(one.ref for one in knobs if one.fate is not Fate.FAILED)
    for group in groups:
        if group.fate is Fate.PUT_BACK:
            journal.group_gone(group.path)
    return _summary(knobs, groups)


def recover(directory: Path = DIRECTORY, *, wait_s: float = 2.0) -> tuple[Restored, tuple[Notice, ...]]:
    """Put back whatever a dead daemon left: for a daemon that starts, the keeper, `dasec restore`.

    Raises JournalBusy while another process has the journal, or OSError.
    """
    journal, notices = Journal.open(directory, wait_s=wait_s)
    sweep_probes()
    try:
        return put_all_back(journal), notices
    finally:
        journal.close()


def restore(directory: Path = DIRECTORY, *, force: bool = False) -> tuple[Restored, tuple[Notice, ...]]:
    """`dasec restore`: as `recover`; with `force` also under a living daemon, which then sees its
    knobs changed by somebody else and does what it is configured to do (by default: yields)."""
    try:
        return recover(directory)
    except JournalBusy:
        if not force:
            raise
    ledger, notices = peek(directory)
    return put_back(ledger.outstanding(), (), ledger.bequests()), notices


def _put_back(
    outstanding: tuple[Outstanding, ...], groups: tuple[str, ...], bequests: Sequence[Bequest], kernel: Kernel
) -> tuple[list[Verdict], list[GroupVerdict]]:
    knobs = _judge_kinds(_THREADS_FIRST, outstanding, kernel)
    living = frozenset(one.ref.vcpu.pid for one in knobs if one.fate is not Fate.VANISHED)
    knobs += disinherit(frozenset(one.ref for one in outstanding), bequests, living, kernel)
    pids = frozenset(one.ref.vcpu.pid for one in outstanding)
    removed = remove_groups(groups, Kinship(pids, bequests, kernel), kernel)
    knobs += _judge_kinds(_AFTER_GROUPS, outstanding, kernel)
    return knobs, removed


def _judge_kinds(
    kinds: Sequence[NativeKnob], outstanding: tuple[Outstanding, ...], kernel: Kernel
) -> list[Verdict]:
    return [judge(one, kernel) for kind in kinds for one in outstanding if one.ref.kind is kind]


def _summary(knobs: Sequence[Verdict], groups: Sequence[GroupVerdict]) -> Restored:
    fates = Counter(one.fate for one in knobs)
    both: tuple[Verdict | GroupVerdict, ...] = (*knobs, *groups)
    return Restored(
        put_back=fates[Fate.PUT_BACK],
        left_alone=tuple(one.detail for one in both if one.fate is Fate.LEFT_ALONE),
        vanished=fates[Fate.VANISHED],
        failed=tuple(one.detail for one in both if one.fate is Fate.FAILED),
    )
