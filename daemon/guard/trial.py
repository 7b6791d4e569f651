"""One trial: windows without and with the policy, in turn, all workloads at once.

    window      0        1      2        3      4        5
    policy    without  with   without  with   without  with   …
    periods    · m m   · m m   · m m   · m m   · m m   · m m      (· settles, m is measured)

All workloads at once, because what a user would have without us is the host without us: a weight takes from
other workloads, too (docs/decisions/0016-guard.md).
"""

from __future__ import annotations

from collections.abc import Mapping

from ..model import Period
from .judge import ENOUGH_PAIRS, MOST_PAIRS, Finding, find
from .state import Series, Trial
from .tally import Services, added, counted, stretches, weighed

WINDOW = 3
"""Periods of a window: one to settle in and two to measure, so that three pairs, and SETTLE before them, are
over within 25 periods: two seconds."""

SETTLING = 1
"""Periods at the start of a window that are not measured: who waits from the one before still does."""


def measured(
    trial: Trial, services: tuple[Services, ...], period: Period
) -> tuple[Trial, tuple[Services, ...]]:
    """The trial and the services with one more period. At age WINDOW, the window is in the series."""
    age, settled = trial.age + 1, trial.age >= SETTLING
    if trial.window == 0:
        trial = trial._replace(counted=counted(trial.counted, period, settled=settled))
        if age == WINDOW:
            services, tallies = weighed(trial.counted, period)
            trial = trial._replace(counted=(), tallies=tallies)
    elif settled:
        trial = trial._replace(tallies=added(trial.tallies, services, period))
    if age == WINDOW:
        trial = _noted(trial, stretches(trial.tallies))
    return trial._replace(age=age), services


def _noted(trial: Trial, seen: Mapping[str, int]) -> Trial:
    """The stretches of a complete window, at the end of each workload's series."""
    known = {each.workload: each for each in trial.series}
    for workload, stretch in seen.items():
        _, without, with_it = known.get(workload) or Series(workload)
        if trial.is_without:
            known[workload] = Series(workload, (*without, stretch), with_it)
        else:
            known[workload] = Series(workload, without, (*with_it, stretch))
    return trial._replace(tallies=(), series=tuple(known.values()))


def findings(trial: Trial, harm_percent: int) -> Mapping[str, Finding]:
    """What the series of each workload says."""
    return {each.workload: find(each.without, each.with_it, harm_percent) for each in trial.series}


def is_over(trial: Trial, found: Mapping[str, Finding]) -> bool:
    """Whether more windows could change nothing, or there were enough: after harm, once nobody is in doubt
    who was seen in every window, or at the end."""
    pairs = (trial.window + 1) // 2
    if Finding.HARM in found.values() or pairs >= MOST_PAIRS:
        return True
    whole = [each.workload for each in trial.series if min(len(each.without), len(each.with_it)) == pairs]
    if not whole:
        return pairs >= ENOUGH_PAIRS
    return all(found[workload] is Finding.FINE for workload in whole)
