"""From a trial to verdicts: who must be left alone, who passed, and when to look again."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from ..model import Period
from .judge import Finding, ratio
from .parameters import GuardParameters
from .state import Series, Standing, Trial, Verdict
from .tally import Tally, stretches

SETTLE = 4
"""Periods that a policy acts before its first trial: what it does at once is then in force. With `critical`
that is the first weights; TSA is at 1.1 to the fourth, and goes on from there in every window with it."""

MOST_DOUBLINGS = 6
"""Of the time to the next try after harm: 64 minutes at most, with the default."""

MOST_PASSES = 3
"""Doublings of the time to the next trial after none: 8 minutes at most, with the default."""

BLANK_DOUBLINGS = 2
"""A trial that saw too little of a workload is repeated once it is busy and this has settled, four times as
long each time: one that starts has its trial as soon as it works, one that hardly works seldom."""

REST = 125
"""Periods from a trial to one that a mere suspicion may start: 10 s, of which a trial is a sixth."""

SUSPICION_PERCENT = 125
"""Suspicious is a stretch so much above the worst that the last trial saw without the policy. Between equal
runs mean latency differed by up to 21 % (docs/measurements.md, "The paper's rules on this kernel")."""


def concluded(
    standings: Iterable[Standing],
    trial: Trial,
    found: Mapping[str, Finding],
    holding: Collection[str],
    period: Period,
    parameters: GuardParameters,
) -> tuple[Standing, ...]:
    """The standings after a trial. `holding` are the workloads on which the policy had changed anything.

    Harm to a workload on which nothing was changed came from the others, and so, most likely, did harm to
    more than half of all that were seen: then the policy leaves everybody alone. Else only those that were
    harmed; the others are tried again at once, because the cause may be in them.
    """
    series = {each.workload: each for each in trial.series}
    harmed = {name for name, finding in found.items() if finding is Finding.HARM}
    whole = bool(harmed) and (2 * len(harmed) > len(found) or not harmed <= set(holding))
    after = []
    for standing in standings:
        name = standing.workload
        if standing.is_neutral and not whole:
            after.append(standing)
        elif name in harmed or (whole and name in holding) or (whole and standing.is_neutral):
            seen = series.get(name) if name in harmed else _worst(series, harmed)
            verdict = Verdict.HARM if name in harmed and name in holding else Verdict.OTHERS
            after.append(_failed(standing, verdict, seen, period.index, parameters))
        elif harmed:
            after.append(standing._replace(until=period.index + SETTLE))
        else:
            after.append(_passed(standing, series.get(name), found.get(name), period.index, parameters))
    return tuple(after)


def _worst(series: Mapping[str, Series], harmed: Iterable[str]) -> Series:
    return max([series[name] for name in harmed], key=lambda each: ratio(each.without, each.with_it))


def _failed(
    standing: Standing, verdict: Verdict, seen: Series | None, index: int, parameters: GuardParameters
) -> Standing:
    wait = parameters.backoff_periods << min(standing.failures, MOST_DOUBLINGS)
    return standing._replace(
        verdict=verdict,
        ratio=ratio(seen.without, seen.with_it) if seen else 0,
        pairs=min(len(seen.without), len(seen.with_it)) if seen else 0,
        until=index + wait,
        failures=standing.failures + 1,
        passes=0,
        since=index,
    )


def _passed(
    standing: Standing, seen: Series | None, finding: Finding | None, index: int, parameters: GuardParameters
) -> Standing:
    wait = parameters.recheck_periods << min(standing.passes, MOST_PASSES)
    if seen is None or finding is not Finding.FINE:
        soon = min(wait, SETTLE << BLANK_DOUBLINGS * min(standing.passes, MOST_DOUBLINGS))
        return standing._replace(since=index, passes=standing.passes + 1, until=index + soon)
    return standing._replace(
        verdict=Verdict.FINE,
        ratio=ratio(seen.without, seen.with_it),
        pairs=min(len(seen.without), len(seen.with_it)),
        until=index + wait,
        failures=max(0, standing.failures - 1),
        passes=standing.passes + 1,
        since=index,
        level=max(seen.without),
    )


def introduced(standings: tuple[Standing, ...], names: Iterable[str], period: Period) -> tuple[Standing, ...]:
    """The standings and, of these workloads, those that are new; they are tried once that has settled."""
    known = {each.workload for each in standings}
    new = [name for name in names if name not in known]
    if not new:
        return standings
    return (*standings, *(Standing(name, until=period.index + SETTLE, since=period.index) for name in new))


def retried(standings: tuple[Standing, ...], index: int) -> tuple[Standing, ...]:
    """Those whose time to be neutral is over may be acted on again, and are tried once that has settled."""
    if not any(each.is_neutral and each.until <= index for each in standings):
        return standings
    return tuple(
        each._replace(verdict=Verdict.UNTRIED, until=index + SETTLE, since=index)
        if each.is_neutral and each.until <= index
        else each
        for each in standings
    )


def suspected(standings: tuple[Standing, ...], tallies: Iterable[Tally], index: int) -> tuple[Standing, ...]:
    """Those that passed and now wait much longer than they did without the policy are due at once."""
    now = stretches(tallies)
    return tuple(
        each._replace(until=index, passes=0)
        if each.verdict is Verdict.FINE
        and index >= each.since + REST
        and now.get(each.workload, 0) * 100 > each.level * SUSPICION_PERCENT
        else each
        for each in standings
    )
