"""What the journal says, in memory: knobs held, groups made, values that may be inherited.

A thread that a held thread starts is born with that thread's slice, mask and cgroup, that
is with values of ours, and would be judged to have had them before we came. So every value
of ours is remembered for its process as a bequest, until the last knob of that process is
settled: a newcomer found with one gets the prior of the thread that it has it from.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from ...knobs.groups import CGROUP
from ...knobs.knob import KnobRef, NativeKnob, NativeValue
from ...knobs.table import INHERITED
from .codec import Bequest, Entry, GroupGone, GroupMade, Held, Settled, encode_ref, encode_value

BEQUESTS_PER_KNOB = 64
"""Newest values remembered for one process and kind of knob: RLA's whole range in steps of 10 %
(§4.2: 21 values between 1.4 and 12 ms) three times over, or every core of a 64-core host."""

ANY_PROCESS = 0
"""The process under which groups are bequeathed: their paths are ours, whoever is found in them."""


class Outstanding(NamedTuple):
    """A knob that we may have written and have not put back."""

    ref: KnobRef
    prior: NativeValue
    ours: tuple[NativeValue, ...]


class Holding:
    """What is known of one held knob. `head` is the constant part of its journal lines, `base` what
    the kernel may hold when the next batch begins, `if_refused` the same if it refuses this one."""

    __slots__ = ("base", "head", "if_refused", "ours", "prior")

    def __init__(self, ref: KnobRef, prior: NativeValue, ours: tuple[NativeValue, ...]) -> None:
        self.prior = prior
        self.ours = self.base = self.if_refused = ours
        self.head = f"{encode_ref(ref)},{encode_value(prior)}"

    def begun(self, ours: tuple[NativeValue, ...], *, once: bool) -> None:
        """A batch begins, after which the kernel is to hold the last of these. Where it writes the
        knob more than once, nobody can tell later which of the writes was refused."""
        self.if_refused = self.base if once else ours
        self.ours, self.base = ours, ours[-1:]

    def refused(self) -> None:
        """The kernel refused a write of the last batch."""
        self.ours = self.base = self.if_refused


class Ledger:
    """The state that a journal's entries add up to."""

    def __init__(self) -> None:
        self.held: dict[KnobRef, Holding] = {}
        self.groups: dict[str, None] = {}
        self._bequests: dict[tuple[int, NativeKnob], dict[NativeValue, Bequest]] = {}
        self._held_of: Counter[int] = Counter()
        self._whole: set[int] = set()
        self._of_main: dict[tuple[int, NativeKnob], Holding] = {}

    def enter(self, entry: Entry) -> None:
        """Add one entry."""
        match entry:
            case Held(ref, prior, ours, at_ticks):
                known = self.held.get(ref)
                if known is None or known.prior != prior:
                    known = Holding(ref, prior, ours)
                known.ours = known.base = known.if_refused = ours
                self.hold(ref, known, ours, at_ticks)
            case Settled(ref):
                self.settle(ref)
            case GroupMade(path):
                self.groups[path] = None
            case GroupGone(path):
                self.drop_group(path)
            case Bequest():
                self._bequeath(entry)

    def hold(self, ref: KnobRef, holding: Holding, ours: tuple[NativeValue, ...], at_ticks: int) -> None:
        """What a Held entry does: this knob may now hold one of `ours`."""
        if self.held.get(ref) is not holding:
            self._enlist(ref, holding)
        kind = ref.kind
        if not kind.inherited:
            return
        who = ref.vcpu
        pid = ANY_PROCESS if kind.found_anywhere else who.pid
        known = self._bequests.get((pid, kind), {})
        # Who gave birth is not known. Where threads of a process had different values before us, the
        # main thread speaks for it: the others may have been pinned one by one.
        speaks = pid == who.tid
        for value in ours:
            earlier = known.get(value)
            if value == holding.prior or (earlier and (not speaks or earlier.prior == holding.prior)):
                continue
            since_ticks = min(at_ticks, earlier.since_ticks) if earlier else at_ticks
            self._bequeath(Bequest(pid, kind, value, holding.prior, since_ticks))

    def settle(self, ref: KnobRef) -> None:
        """What a Settled entry does; the last knob of a process takes that process's bequests with it."""
        if self.held.pop(ref, None) is None:
            return
        if ref.sake is None:
            return
        pid = ref.sake.pid
        if pid == ref.sake.tid:
            self._of_main.pop((pid, ref.kind), None)
        self._held_of[pid] -= 1
        if self._held_of[pid] <= 0:
            del self._held_of[pid]
            self._whole.discard(pid)
            for kind in INHERITED:
                self._bequests.pop((pid, kind), None)

    def drop_group(self, path: str) -> None:
        """What a GroupGone entry does; nobody can be found in that group any more."""
        self.groups.pop(path, None)
        values = self._bequests.get((ANY_PROCESS, CGROUP), {})
        for value in [one for one in values if is_directory_of(path, one)]:
            del values[value]

    def bequest(self, pid: int, kind: NativeKnob, value: NativeValue) -> Bequest | None:
        """Is this a value of ours that threads of this process may have been born with?"""
        if kind.bequeathed_by_main and pid not in self._whole:
            return None
        return self._bequests.get((pid, kind), {}).get(value)

    def bequests_of(self, pid: int, kind: NativeKnob) -> tuple[Bequest, ...]:
        """All such values of one knob in one process."""
        if kind.bequeathed_by_main and pid not in self._whole:
            return ()
        return tuple(self._bequests.get((pid, kind), {}).values())

    def prior_of_main(self, pid: int, kind: NativeKnob) -> NativeValue | None:
        """What this knob of the main thread held before us, or None where we do not hold it."""
        holding = self._of_main.get((pid, kind))
        return None if holding is None else holding.prior

    def bequests(self) -> tuple[Bequest, ...]:
        """Every such value."""
        return tuple(
            one
            for (pid, kind), values in self._bequests.items()
            if not kind.bequeathed_by_main or pid in self._whole
            for one in values.values()
        )

    def outstanding(self) -> tuple[Outstanding, ...]:
        """Every held knob, oldest first."""
        return tuple(Outstanding(ref, one.prior, one.ours) for ref, one in self.held.items())

    def entries(self, at_ticks: int) -> Iterator[Entry]:
        """A shortest history that leads to this state."""
        for values in self._bequests.values():
            yield from values.values()
        for ref, holding in self.held.items():
            yield Held(ref, holding.prior, holding.ours, at_ticks)
        yield from map(GroupMade, self.groups)

    def _enlist(self, ref: KnobRef, holding: Holding) -> None:
        if ref.sake is not None:
            pid, tid, _ = ref.sake
            if ref not in self.held:
                self._held_of[pid] += 1
            if pid == tid and not ref.kind.of_group:  # nobody is born with a group's
                self._whole.add(pid)
                self._of_main[pid, ref.kind] = holding
        self.held[ref] = holding

    def _bequeath(self, bequest: Bequest) -> None:
        values = self._bequests.setdefault((bequest.pid, bequest.kind), {})
        values[bequest.value] = bequest
        if len(values) > BEQUESTS_PER_KNOB and bequest.pid != ANY_PROCESS:
            del values[next(iter(values))]


def is_directory_of(path: str, group: NativeValue) -> bool:
    """Is this the directory of that group of ours? The two differ by mount point and root, not in
    their last step, which holds the thread's id (docs/decisions/0005-own-groups.md)."""
    return path.rpartition("/")[2] == str(group).rpartition("/")[2]
