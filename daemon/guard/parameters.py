"""Settings of the guard."""

from __future__ import annotations

from dataclasses import dataclass

HARM_PERCENT = 12
"""How much longer than without the policy is harm. A service's latency goes with the fourth to fifth power
of what is measured here (docs/guard.md, "What the measure is worth"), so these are 1.6 times the latency;
what is above a third of it is taken for harm if two seconds do not say otherwise."""

BACKOFF_S = 60
"""How long a policy that did harm is not tried again. A trial takes two seconds at most to find large harm,
half of them with the policy; at four times the latency, the worst that was measured (docs/guard.md), that is
5 % of the time until the next one. Doubled after each failure."""

RECHECK_S = 60
"""How long a policy that did no harm is left alone: a trial takes 11 periods away from it at most, 1.5 % of
the gain. Doubled after each trial that finds no harm."""

PERIOD_NS = 80_000_000
"""The period of the paper's evaluation, and our default."""

PERIODS_A_SECOND = 1_000_000_000 / PERIOD_NS


@dataclass(frozen=True, slots=True)
class GuardParameters:
    """Settings of the guard; a ratio of 1 + `harm_percent` / 100 is harm, given the evidence for it."""

    harm_percent: int = HARM_PERCENT
    backoff_periods: int = int(BACKOFF_S * PERIODS_A_SECOND)
    recheck_periods: int = int(RECHECK_S * PERIODS_A_SECOND)
    period_ns: int = PERIOD_NS

    def __post_init__(self) -> None:
        if not 1 <= self.harm_percent <= 100:
            raise ValueError(f"guard: harm_percent is {self.harm_percent}: give 1 to 100")
        if self.backoff_periods < 1:
            raise ValueError(f"guard: backoff_periods is {self.backoff_periods}: give 1 or more")
        if self.recheck_periods < 1:
            raise ValueError(f"guard: recheck_periods is {self.recheck_periods}: give 1 or more")
        if self.period_ns < 1:
            raise ValueError(f"guard: period_ns is {self.period_ns}: give 1 or more")
