"""One trial: windows without and with the policy, in turn, all workloads at once.

    window          0      1     2      3     4      5
    policy       without  with without with without with …
    periods        m m     m     m      m     m      m     (m is measured)

All workloads at once, because what a user would have without us is the host without us: a weight takes from
other workloads, too (docs/decisions/0016-guard.md).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import median
from typing import NamedTuple

from ..model import Period
from .judge import (
    LEAST_PAIRS,
    MOST_PAIRS,
    MOST_PASSES,
    ODDS_OF_A_PASS,
    ODDS_OF_ONE,
    ODDS_OF_ONE_AT_THE_END,
    USUAL_SPREAD_OF_ONE,
    Evidence,
    SoFar,
    find,
    lead,
    score,
)
from .state import Trial
from .tally import Services, added, counted, stretches, weighed

FIRST_WINDOW = 2
"""Periods of the first window, which is weighed by the services counted in itself: one has too few wake-ups
of a workload with a dozen requests a second."""

WINDOW = 1
"""Periods of all others. In the records of docs/guard.md harm was whole in the first period after a switch,
and gone in the first without; and in the same time, windows of one period are 15 % less noisy than those of
two, because load lasts longer than either."""


def measured(
    trial: Trial, services: tuple[Services, ...], period: Period
) -> tuple[Trial, tuple[Services, ...]]:
    """The trial and the services with one more period; at the end of a window, that is among the others."""
    trial = trial._replace(age=trial.age + 1)
    if trial.is_without:
        trial = trial._replace(counted=counted(trial.counted, period))
    if trial.window:
        trial = trial._replace(tallies=added(trial.tallies, services, period))
    elif is_whole(trial):
        services, tallies = weighed(trial.counted, period)
        trial = trial._replace(tallies=tallies)
    if is_whole(trial):
        seen = tuple(stretches(trial.tallies).items())
        trial = trial._replace(tallies=(), windows=(*trial.windows, seen))
        if not trial.is_without:
            services, _ = weighed(trial.counted, period)
    return trial, services


def is_whole(trial: Trial) -> bool:
    """Is the present window over?"""
    return trial.age >= (WINDOW if trial.window else FIRST_WINDOW)


class Weighed(NamedTuple):
    """What the windows so far say of the host, and of each workload."""

    host: Evidence
    workloads: Mapping[str, Evidence]


class Judgement(NamedTuple):
    """What a trial says so far: of the host, whom the policy harms, by which evidence; and if it may end."""

    host: SoFar
    harmed: frozenset[str]
    weighed: Weighed
    is_over: bool


def weigh(trial: Trial, passes: int) -> Weighed:
    """The leads of each pair of windows, and those between windows of the same kind; the policy has passed so
    many trials before."""
    windows = [dict(each) for each in trial.windows]
    pairs = [_leads(*pair) for pair in zip(windows[::2], windows[1::2], strict=False)]
    controls = [_leads(*pair) for pair in zip(windows, windows[2:], strict=False)]
    names = dict.fromkeys([name for each in windows for name in each])
    trust = -ODDS_OF_A_PASS * min(passes, MOST_PASSES)
    return Weighed(
        Evidence(_middles(pairs), _middles(controls), prior=trust),
        {
            name: Evidence(
                _of(name, pairs),
                _of(name, controls),
                USUAL_SPREAD_OF_ONE,
                -ODDS_OF_ONE,
                ODDS_OF_ONE_AT_THE_END,
            )
            for name in names
        },
    )


def judged(trial: Trial, harm_percent: int, passes: int) -> Judgement:
    """The windows so far. After harm a trial is over; without, as soon as the host is in no doubt, and nobody
    likelier to be harmed than not; in any case after MOST_PAIRS, or LEAST_PAIRS in which nobody was seen."""
    pairs = len(trial.windows) // 2
    weighed = weigh(trial, passes)
    host = find(weighed.host, harm_percent, pairs)
    found = {name: find(each, harm_percent, pairs) for name, each in weighed.workloads.items()}
    harmed = frozenset([name for name, each in found.items() if each is SoFar.HARM])
    if host is SoFar.HARM or harmed or pairs >= MOST_PAIRS:
        return Judgement(host, harmed, weighed, is_over=True)
    if not weighed.host.leads:
        return Judgement(host, harmed, weighed, is_over=pairs >= LEAST_PAIRS)
    likelier = any(score(each, harm_percent) > 0 for each in weighed.workloads.values())
    return Judgement(host, harmed, weighed, is_over=host is SoFar.FINE and not likelier)


def middle(leads: Iterable[int]) -> int:
    """The workload that speaks for all; of two both do."""
    return round(median(leads))


def _middles(leads: Iterable[Mapping[str, int]]) -> Sequence[int]:
    return [middle(each.values()) for each in leads if each]


def _leads(earlier: Mapping[str, int], later: Mapping[str, int]) -> dict[str, int]:
    return {name: lead(earlier[name], stretch) for name, stretch in later.items() if name in earlier}


def _of(name: str, leads: Iterable[Mapping[str, int]]) -> list[int]:
    return [each[name] for each in leads if name in each]
