"""The control loop: every period, observe → decide → plan → apply → record."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from .budget import UNBOUNDED, Account, Budget, Outlay
from .gap import gap_between
from .hosts.host import Host
from .log import Announcer
from .model import Change, Outcome, PolicyState, Restored, Result, Snapshot
from .period import between
from .plan import plan
from .policy import Policy
from .record.entries import Entry, Stages, shown
from .roster import RosterEntry


class Pace(Protocol):
    """Says when a period is due (service/timer.py)."""

    late: int

    def wait(self, periods: int) -> bool:
        """Sleep until so many periods are over. False: stop."""

    def reload_due(self) -> bool:
        """Has somebody asked for the configuration to be read again, since this was asked last?"""


class Witness(Protocol):
    """Is told of every period, and never raises for what a disk or a reader does."""

    def write(self, entry: Entry, before: PolicyState) -> None:
        """One period, decided from the policy state `before`."""


@dataclass(frozen=True, slots=True)
class Parts:
    """What the loop works with. `stand_by` sees to the keeper: without one, no knob is written."""

    roster: Callable[[], Sequence[RosterEntry]]
    host: Host
    policy: Policy
    reload: Callable[[], Policy]
    stand_by: Callable[[], bool]
    witnesses: tuple[Witness, ...]
    announcer: Announcer
    budget: Budget = UNBOUNDED


def control(parts: Parts, pace: Pace) -> Restored:
    """Run periods until the pace ends; whatever happens, put every knob back."""
    policy, state = parts.policy, parts.policy.initial_state()
    index, recorded_ns, outlay = 0, 0, Outlay()
    try:
        before = _observe(parts)
        gc.collect()
        gc.freeze()  # what exists now stays: no need to look through it again (docs/overhead.md, "Garbage")
        account = Account(0, time.monotonic_ns(), time.process_time_ns())
        while pace.wait(outlay.rest):
            if pace.reload_due() and (now := parts.reload()) is not policy:
                parts.host.restore()  # another policy begins with the host as the first one found it
                policy, state = now, now.initial_state()
            started_ns, guarded = time.monotonic_ns(), parts.stand_by()
            after = _observe(parts)
            if gap := gap_between(before, after, outlay.rest * parts.budget.period_ns):
                parts.announcer.note(gap)
            if before is None or after is None or gap:
                before, outlay = after or before, Outlay()
                continue
            seen_ns = time.monotonic_ns()
            period = between(index, before, after)
            decision = policy.decide(period, state)
            planned = plan(period, decision)
            decided_ns = time.monotonic_ns()
            results = _apply(parts, planned.changes, guarded)
            parts.host.watch(not decision.unwatched)
            applied_ns = time.monotonic_ns()
            took = Stages(seen_ns - started_ns, decided_ns - seen_ns, applied_ns - decided_ns, recorded_ns)
            account, outlay = parts.budget.pay(account, after.clock_ns, time.process_time_ns(), decision)
            told = period, decision, results, planned.violations, took, outlay
            entry = Entry(after.clock_ns, pace.late, *told)
            for witness in parts.witnesses:
                witness.write(entry, state)
            before, state, index = after, decision.state, index + 1
            recorded_ns = time.monotonic_ns() - applied_ns
    finally:
        gc.unfreeze()
        restored = parts.host.restore()
    return restored


def _observe(parts: Parts) -> Snapshot | None:
    """What the host sees now; None, announced once, if it cannot say."""
    try:
        seen = parts.host.observe(parts.roster())
    except OSError as error:
        parts.announcer.state("observe", f"cannot observe: {error}: trying again every period")
        return None
    parts.announcer.state("observe", None, "observing again")
    return seen


def _apply(parts: Parts, changes: Sequence[Change], guarded: bool) -> tuple[Result, ...]:
    """Apply, and announce when writing begins or ceases to fail as a whole."""
    if not changes:
        return ()
    rejected = (Result(change, Outcome.REJECTED, "no keeper yet") for change in changes)
    results = tuple(map(shown, parts.host.apply(changes) if guarded else rejected))
    refused = {result.detail for result in results if result.outcome is Outcome.REJECTED}
    whole = len(refused) == 1 and all(result.outcome is Outcome.REJECTED for result in results)
    trouble = f"cannot write any knob: {refused.pop()}: trying again every period" if whole else None
    parts.announcer.state("apply", trouble, "writing knobs again")
    return results
