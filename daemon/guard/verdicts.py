"""From a trial to verdicts: who must be left alone, who passed, and when to look again."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from statistics import median_high

from ..model import Period
from .judge import LEAST_PAIRS, MOST_PAIRS, Evidence, SoFar, is_worse, lead, lead_of
from .parameters import GuardParameters
from .state import GuardStanding, Trial, Verdict
from .tally import Tally, stretches
from .trial import Judgement, middle

SETTLE = 4
"""Periods that a policy acts before its first trial: what it does at once is then in force. With `critical`
that is the first weights; TSA is at 1.1 to the fourth, and goes on from there in every window with it."""

MOST_DOUBLINGS = 6
"""Of the time to the next try after harm: 64 minutes at most, with the default."""

DOUBT = 4
"""Of the time to the next try, where the last one lasted to its end: who is off for less than odds of nine
to one is tried again that much sooner."""

MOST_RECHECKS = 3
"""Doublings of the time to the next trial after none: 8 minutes at most, with the default."""

BLANK_DOUBLINGS = 2
"""A trial that saw too little of a workload is repeated once it is busy and this has settled, four times as
long each time: one that starts has its trial as soon as it works, one that hardly works seldom."""

REST = 6
"""Periods from a trial to one that a mere suspicion may start, doubled with each pass: a second after the
first, because a policy that goes step by step has not shown yet what it does; then two, four, and so on."""

MOST_RESTS = 6
"""Doublings of that: half a minute at most, with the default period. A trial takes 21 periods or fewer, half
of them with the policy."""

SUSPICION_PERCENT = 15
"""Suspicious is a stretch of the workload in the middle so much above that in the last trial without the
policy. Chance does that in one look of five (docs/guard.md, "Noise"); but `dasec`, fully at work, did not
stretch by more than 18 % where it made a request take twice as long."""

OWN_SUSPICION_PERCENT = 60
"""The same for a single workload, which differs more from window to window."""


def concluded(
    standings: Iterable[GuardStanding],
    trial: Trial,
    judgement: Judgement,
    holding: Collection[str],
    period: Period,
    parameters: GuardParameters,
) -> tuple[GuardStanding, ...]:
    """The standings after a trial. `holding` are the workloads on which the policy had changed anything.

    If the host does worse, the policy leaves everybody alone; also after harm to a workload on which nothing
    was changed, because it came from the others. Else only those are left alone that were harmed; the others
    are tried again at once, because the cause may be in them.
    """
    percent, (host, seen_of) = parameters.harm_percent, judgement.weighed
    harmed, whole = set(judgement.harmed), judgement.host is SoFar.HARM
    if whole:
        harmed |= {name for name, each in seen_of.items() if is_worse(each, percent)}
    elif harmed:
        whole = is_worse(host, percent) or not harmed <= set(holding)
    is_sure = len(trial.windows) < 2 * MOST_PAIRS
    backoff = parameters.backoff_periods if is_sure else max(1, parameters.backoff_periods // DOUBT)
    after = []
    for standing in standings:
        name, index = standing.workload, period.index
        if standing.is_neutral and not whole:
            after.append(standing)
        elif name in harmed:
            verdict = Verdict.HARM if name in holding else Verdict.OTHERS
            after.append(_failed(standing, verdict, seen_of[name], index, backoff))
        elif whole and (name in holding or standing.is_neutral):
            worst = max([host, *[seen_of[each] for each in harmed]], key=lambda each: each.ratio)
            after.append(_failed(standing, Verdict.OTHERS, worst, index, backoff))
        elif harmed:
            after.append(standing._replace(until=index + SETTLE))
        else:
            after.append(_passed(standing, trial, seen_of.get(name), index, parameters))
    return tuple(after)


def _failed(
    standing: GuardStanding, verdict: Verdict, seen: Evidence, index: int, backoff: int
) -> GuardStanding:
    wait = backoff << min(standing.failures, MOST_DOUBLINGS)
    return standing._replace(
        verdict=verdict,
        ratio=seen.ratio,
        pairs=len(seen.leads),
        until=index + wait,
        failures=standing.failures + 1,
        passes=0,
        since=index,
    )


def _passed(
    standing: GuardStanding, trial: Trial, seen: Evidence | None, index: int, parameters: GuardParameters
) -> GuardStanding:
    wait = parameters.recheck_periods << min(standing.passes, MOST_RECHECKS)
    if seen is None or len(seen.leads) < LEAST_PAIRS:
        soon = min(wait, SETTLE << BLANK_DOUBLINGS * min(standing.passes, MOST_DOUBLINGS))
        return standing._replace(since=index, passes=standing.passes + 1, until=index + soon)
    without = [dict(each).get(standing.workload) for each in trial.windows[::2]]
    return standing._replace(
        verdict=Verdict.FINE,
        ratio=seen.ratio,
        pairs=len(seen.leads),
        until=index + wait,
        failures=max(0, standing.failures - 1),
        passes=standing.passes + 1,
        since=index,
        level=median_high([each for each in without if each is not None]),
    )


def passes_of(standings: Iterable[GuardStanding]) -> int:
    """How many trials in a row the policy has passed, with everybody who was seen in one."""
    return min([each.passes for each in standings if each.verdict is Verdict.FINE], default=0)


def present(standings: tuple[GuardStanding, ...], period: Period) -> tuple[GuardStanding, ...]:
    """The standings of workloads that are there. One that comes back begins anew: it is another process, or
    machine, and a name tells nothing of what it waits for."""
    names = {workload.name for workload in period.workloads}
    if all(each.workload in names for each in standings):
        return standings
    return tuple(each for each in standings if each.workload in names)


def introduced(
    standings: tuple[GuardStanding, ...], names: Iterable[str], period: Period
) -> tuple[GuardStanding, ...]:
    """The standings and, of these workloads, those that are new; they are tried once that has settled."""
    known = {each.workload for each in standings}
    new = [name for name in names if name not in known]
    if not new:
        return standings
    return (
        *standings,
        *(GuardStanding(name, until=period.index + SETTLE, since=period.index) for name in new),
    )


def retried(standings: tuple[GuardStanding, ...], index: int) -> tuple[GuardStanding, ...]:
    """Those whose time to be neutral is over may be acted on again, and are tried once that has settled."""
    if not any(each.is_neutral and each.until <= index for each in standings):
        return standings
    return tuple(
        each._replace(verdict=Verdict.UNTRIED, until=index + SETTLE, since=index)
        if each.is_neutral and each.until <= index
        else each
        for each in standings
    )


def suspected(
    standings: tuple[GuardStanding, ...], tallies: Iterable[Tally], index: int
) -> tuple[GuardStanding, ...]:
    """Those that passed are due at once if they now wait much longer than they did without the policy, or if
    the workload in the middle does."""
    now = stretches(tallies)
    leads = {
        each.workload: lead(each.level, now[each.workload])
        for each in standings
        if each.verdict is Verdict.FINE and each.workload in now
    }
    whole = bool(leads) and middle(leads.values()) >= lead_of(SUSPICION_PERCENT)
    return tuple(
        each._replace(until=index)
        if each.workload in leads
        and index >= each.since + (REST << min(each.passes, MOST_RESTS))
        and (whole or leads[each.workload] >= lead_of(OWN_SUSPICION_PERCENT))
        else each
        for each in standings
    )
