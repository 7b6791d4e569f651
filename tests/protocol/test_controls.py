"""The checker catches what it is there for: DASEC with one line of it undone, and a wrong state is found."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest

from dasec.hosts.threads.act import Actuator
from dasec.hosts.threads.crew import Crew
from dasec.hosts.threads.foreign import ReadBack
from dasec.hosts.threads.thread import ManagedThread
from dasec.knobs import knob
from dasec.knobs.groups import GroupKnob
from dasec.knobs.knob import KnobRef, NativeValue
from dasec.knobs.masks import AFFINITY, Mask
from dasec.knobs.quotas import Quota
from dasec.linux import affinity
from dasec.model import Restored
from dasec.safety import keeping, restore
from dasec.safety.births import Births
from dasec.safety.fate import KnobFate, judge
from dasec.safety.heirs import Heirs
from dasec.safety.journal.journal import Journal
from dasec.safety.journal.ledger import Outstanding
from dasec.safety.kernel import Kernel

from . import scenarios, syscalls, worlds
from .explore import Found, explore
from .worlds import Scenario, World

Patches = pytest.MonkeyPatch


@pytest.fixture(autouse=True)
def model() -> Iterator[None]:
    with syscalls.in_place():
        yield


def caught(scenario: Scenario) -> Found:
    return explore(World.of(scenario))


def no_identity(patches: Patches) -> Scenario:
    """A knob is read and written by the thread's number alone."""
    patches.setattr(knob, "_check", lambda ref, proc: None)
    return scenarios.REUSE


def foreign_overwritten(patches: Patches) -> Scenario:
    """Whatever somebody else has set is put back, too."""

    def judge_all(one: Outstanding, kernel: Kernel) -> KnobFate:
        try:
            return judge(one._replace(ours=(*one.ours, kernel.read(one.ref))), kernel)
        except Exception:
            return judge(one, kernel)

    patches.setattr(restore, "judge", judge_all)
    return scenarios.THIRD_PARTY


def tail_kept(patches: Patches) -> Scenario:
    """Half a write to the journal is left there when there is no room for all of it."""
    patches.setattr(Journal, "_cut_tail", lambda self: None)
    return scenarios.CORE


def written_first(patches: Patches) -> Scenario:
    """Knobs are written before the journal has them."""
    begin = Journal.begin
    carry_out: Callable[..., Any] = Actuator._carry_out

    def late(self: Actuator, intents: list[Any]) -> Any:  # noqa: ANN401
        waiting: list[Any] = []
        patches.setattr(Journal, "begin", lambda journal, writes: waiting.append(writes))
        try:
            return carry_out(self, intents)
        finally:
            patches.setattr(Journal, "begin", begin)
            with suppress(OSError):
                for writes in waiting:
                    self.journal.begin(writes)

    patches.setattr(Actuator, "_carry_out", late)
    return scenarios.CORE


def settled_first(patches: Patches) -> Scenario:
    """The restorer forgets what it holds before it puts it back."""
    whole = restore.put_all_back

    def early(journal: Journal, kernel: Kernel) -> Restored:
        held, groups, bequests = journal.outstanding(), journal.groups(), journal.bequests()
        journal.settle([one.ref for one in held])
        restore.put_back(held, groups, bequests, kernel)
        return whole(journal, kernel)

    patches.setattr(worlds, "put_all_back", early)
    return scenarios.CORE


def one_attempt(patches: Patches) -> Scenario:
    """The keeper tries once."""
    patches.setattr(keeping, "_ATTEMPTS", 1)
    return scenarios.BUSY


def failures_forgotten(patches: Patches) -> Scenario:
    """What could not be put back is settled all the same."""
    whole = restore.put_all_back

    def forget(journal: Journal, kernel: Kernel) -> Restored:
        restored = whole(journal, kernel)
        journal.settle([one.ref for one in journal.outstanding()])
        return restored

    patches.setattr(worlds, "put_all_back", forget)
    return scenarios.BUSY


def refusals_unsaid(patches: Patches) -> Scenario:
    """Values that the kernel refused push out the one that it holds."""
    patches.setattr(Journal, "rejected", lambda self, refs: None)
    return scenarios.BUSY


def nobody_waits(patches: Patches) -> Scenario:
    """Nobody looks whether a birth is still under way."""
    patches.setattr(Births, "expect", lambda self, parents: None)
    return scenarios.BIRTHS


def nobody_sweeps(patches: Patches) -> Scenario:
    """Nobody looks for threads that were born with a value of ours."""
    patches.setattr(restore, "disinherit", lambda held, bequests, kernel: list(held))
    return scenarios.BIRTHS


def newborn_keeps(patches: Patches) -> Scenario:
    """What a newborn thread was born with is taken for its own."""

    def own(self: Heirs, ref: KnobRef, found: NativeValue) -> NativeValue | None:
        return None

    patches.setattr(Heirs, "prior", own)
    return scenarios.BIRTHS


def cut_is_foreign(patches: Patches) -> Scenario:
    """The daemon takes a mask of ours that the cpuset cut for somebody else's."""

    def exactly(self: ReadBack, thread: ManagedThread) -> bool:
        return affinity.get(thread.id.tid) == thread.held[AFFINITY].now

    patches.setattr(ReadBack, "_is_ours", exactly)
    return scenarios.CPUSETS


def cut_is_foreign_at_the_end(patches: Patches) -> Scenario:
    """The restorer does."""
    patches.setattr(Mask, "may_read", lambda self, value, present: False)
    return scenarios.CPUSETS


def turned_away_and_forgotten(patches: Patches) -> Scenario:
    """Nobody holds the knobs of a thread that leaves the fair class."""

    def forget(self: Crew, thread: ManagedThread, reason: str) -> None:
        self._put_back.journal.settle([one.ref for one in thread.held.values()])
        thread.held.clear()
        self.let_go((thread,))

    patches.setattr(Crew, "turn_away", forget)
    return scenarios.CLASSES


def turned_away_and_met_anew(patches: Patches) -> Scenario:
    """The journal holds them, and the thread is adopted with our values as its own when it comes back."""

    def drop(self: Crew, thread: ManagedThread, reason: str) -> None:
        thread.held.clear()
        self.let_go((thread,))

    patches.setattr(Crew, "turn_away", drop)
    return scenarios.WEIGHTS


def group_by_name(patches: Patches) -> Scenario:
    """A group that was made again under its name is the one that was removed."""
    patches.setattr(GroupKnob, "same_group", staticmethod(lambda ref: None))
    return scenarios.WEIGHTS


def half_is_foreign(patches: Patches) -> Scenario:
    """A quota that a killed daemon had half written is somebody else's."""

    def never(self: Quota, ref: KnobRef, prior: NativeValue, ours: object, present: NativeValue) -> bool:
        return False

    patches.setattr(Quota, "half_written", never)
    return scenarios.QUOTAS


def quota_of_a_group_by_name(patches: Patches) -> Scenario:
    """The same of a quota."""
    patches.setattr(GroupKnob, "same_group", staticmethod(lambda ref: None))
    return scenarios.QUOTAS


def given_up_for_want_of_a_descriptor(patches: Patches) -> Scenario:
    """The keeper does not try again where the journal could not be opened for a moment."""
    patches.setattr(keeping, "MOMENTARY", frozenset())
    return scenarios.UNREADABLE


MUTANTS = (
    turned_away_and_forgotten,
    turned_away_and_met_anew,
    group_by_name,
    half_is_foreign,
    quota_of_a_group_by_name,
    given_up_for_want_of_a_descriptor,
    cut_is_foreign,
    cut_is_foreign_at_the_end,
    no_identity,
    foreign_overwritten,
    tail_kept,
    written_first,
    settled_first,
    one_attempt,
    failures_forgotten,
    refusals_unsaid,
    nobody_waits,
    nobody_sweeps,
    newborn_keeps,
)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda one: str(one.__name__))
def test_it_is_caught_when(mutant: Callable[[Patches], Scenario], monkeypatch: Patches) -> None:
    found = caught(mutant(monkeypatch))
    assert found.wrong, f"{mutant.__doc__} Nothing wrong in {found}"
    print(f"{mutant.__doc__}\n{found}")
