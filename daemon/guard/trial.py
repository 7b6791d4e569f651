"""One trial: windows without and with the policy, in turn, all workloads at once.

    window        0     1      2      3     4      5
    policy     without with  without with  without with  …
    periods      m m   m m     m m   m m     m m   m m      (m is measured)

All workloads at once, because what a user would have without us is the host without us: a weight takes from
other workloads, too (docs/decisions/0016-guard.md).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from statistics import median_low
from typing import NamedTuple

from ..model import Period
from .judge import ENOUGH_PAIRS, MOST_PAIRS, Evidence, Finding, find, lead
from .state import Trial
from .tally import Services, added, counted, stretches, weighed

WINDOW = 2
"""Periods of a window. Who waits when one begins still waits because of the one before; but periods that are
left out to settle cost more than they bring: with the noise of 52 real records (docs/guard.md, "Noise")
harm of twice the waiting was found within two seconds in 80 % of trials with windows of two periods, in 68 %
with three, and in 62 % with three of which the first is left out."""


def measured(
    trial: Trial, services: tuple[Services, ...], period: Period
) -> tuple[Trial, tuple[Services, ...]]:
    """The trial and the services with one more period. At age WINDOW, the window is among the others."""
    age = trial.age + 1
    if trial.window == 0:
        trial = trial._replace(counted=counted(trial.counted, period))
        if age == WINDOW:
            services, tallies = weighed(trial.counted, period)
            trial = trial._replace(counted=(), tallies=tallies)
    else:
        trial = trial._replace(tallies=added(trial.tallies, services, period))
    if age == WINDOW:
        seen = tuple(stretches(trial.tallies).items())
        trial = trial._replace(tallies=(), windows=(*trial.windows, seen))
    return trial._replace(age=age), services


class Weighed(NamedTuple):
    """What the windows so far say of the host, and of each workload."""

    host: Evidence
    workloads: Mapping[str, Evidence]


def weigh(trial: Trial) -> Weighed:
    """The leads of each pair of windows, and those between windows of the same kind."""
    windows = [dict(each) for each in trial.windows]
    pairs = [_leads(*pair) for pair in zip(windows[::2], windows[1::2], strict=False)]
    controls = [_leads(*pair) for pair in zip(windows, windows[2:], strict=False)]
    names = dict.fromkeys([name for each in windows for name in each])
    return Weighed(
        Evidence(_middles(pairs), _middles(controls)),
        {name: Evidence(_of(name, pairs), _of(name, controls)) for name in names},
    )


def middle(leads: Iterable[int]) -> int:
    """The workload that speaks for all; of two the milder."""
    return median_low(leads)


def _middles(leads: Iterable[Mapping[str, int]]) -> list[int]:
    return [middle(each.values()) for each in leads if each]


def _leads(earlier: Mapping[str, int], later: Mapping[str, int]) -> dict[str, int]:
    return {name: lead(earlier[name], stretch) for name, stretch in later.items() if name in earlier}


def _of(name: str, leads: Iterable[Mapping[str, int]]) -> list[int]:
    return [each[name] for each in leads if name in each]


def is_over(weighed: Weighed, harm_percent: int, pairs: int) -> bool:
    """Whether more windows could change nothing, or there were enough: after harm, once neither the host is
    in doubt nor anybody who was seen in every window, or at the end."""
    if pairs >= MOST_PAIRS:
        return True
    found = {name: find(each, harm_percent) for name, each in weighed.workloads.items()}
    host = find(weighed.host, harm_percent)
    if host is Finding.HARM or Finding.HARM in found.values():
        return True
    whole = [found[name] for name, each in weighed.workloads.items() if len(each.leads) == pairs]
    if not whole:
        return pairs >= ENOUGH_PAIRS
    return all(each is Finding.FINE for each in (host, *whole))
