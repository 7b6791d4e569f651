"""Is it harm? Windows with the policy against the windows just before them, as few as the answer allows.

**What is compared.** In each window one number of a workload, its *stretch*: how much longer than its
computing the vCPUs took that siblings wait for (`tally.py`). Of two windows, the *lead* of the later one is

    (later - earlier) / (later + earlier)   in thousandths:

0 for no change, 200 for 1.5 times as long, 333 for twice, never above 1000, so one wild window weighs little.

**Of whom.** Of each workload, and of the host: a policy is switched for all at once, and they share the
cores, so in each pair of windows the workload in the middle speaks for the host. That is a fifth less noisy
than a single one, and no single one can move it.

**What is asked.** Which of two is likelier (Wald's sequential test, "Sequential Tests of Statistical
Hypotheses", 1945): a policy that does harm, with leads of `harm_percent` in the mean, or one that gains a
THIRD of that. Each pair of windows adds its logarithm of likelihoods to the *score*:

    score += (lead - middle of the two) × (their distance) / variance

and a trial ends as soon as that is ODDS either way. How far leads are apart by chance is seen between windows
of the same kind, one after the other; as these are few at first, together with the usual spread.

**Who must prove what.** After MOST_PAIRS the likelier of the two holds for the host. So a policy may be off
where it has no effect, which costs nothing. One that has passed before begins with a score below 0. So does
harm to a single workload, and must be ODDS_OF_ONE_AT_THE_END likelier then: it is rarer than harm to all, and
there are many to be wrong about.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple

WHOLE = 1000
"""Ratios are counted in thousandths."""

LEAST_PAIRS = 4
"""Pairs of windows for a finding. Fewer may be two bursts."""

MOST_PAIRS = 10
"""Pairs of windows after which a trial ends: with those before it, two seconds."""

THIRD = 3
"""What is held against harm: a gain of a third of it. With the default that is 4 % of the stretch, and what
`critical` gained in the demo (docs/guard.md, "Noise")."""

ODDS = 220
"""In hundredths, natural logarithm: nine to one."""

ODDS_OF_ONE_AT_THE_END = 70
"""For harm to a single workload, where a trial has lasted as long as it may: two to one."""

ODDS_OF_ONE = 240
"""Against harm to a single workload, to begin with: eleven to one."""

ODDS_OF_A_PASS = 70
"""Against harm by a policy, for each trial in a row that it passed: two to one, MOST_PASSES times at most."""

MOST_PASSES = 3

USUAL_SPREAD, USUAL_SPREAD_OF_ONE, USUAL_PAIRS = 120, 170, 6
"""How far leads of the host, and of a workload, are from 0 where nothing changes (docs/guard.md, "Noise"),
and for how many of them that counts."""


class SoFar(StrEnum):
    """What the windows so far say."""

    HARM = "harm"
    FINE = "fine"
    OPEN = "open"


class Evidence(NamedTuple):
    """The leads of the policy, a pair of windows each, and those between windows of the same kind; what is
    usual for those, the score to begin with, and the one from which on a trial in doubt ends with harm."""

    leads: Sequence[int] = ()
    controls: Sequence[int] = ()
    spread: int = USUAL_SPREAD
    prior: int = 0
    doubt: int = 0

    @property
    def ratio(self) -> int:
        """How many times as long it took with the policy, in thousandths."""
        mean = sum(self.leads) // max(1, len(self.leads))
        return (WHOLE + mean) * WHOLE // max(1, WHOLE - mean)


def lead(earlier: int, later: int) -> int:
    """By how much the later of two stretches is longer.

    >>> lead(2000, 4000), lead(1500, 1500)
    (333, 0)
    """
    return (later - earlier) * WHOLE // max(1, later + earlier)


def lead_of(percent: int) -> int:
    """The lead of a stretch that is so many percent longer.

    >>> lead_of(12), lead_of(100)
    (56, 333)
    """
    return percent * WHOLE // (200 + percent)


def is_worse(evidence: Evidence, harm_percent: int) -> bool:
    """Whether it took longer with the policy by so much, surely or by chance."""
    return sum(evidence.leads) >= max(1, len(evidence.leads)) * lead_of(harm_percent)


def score(evidence: Evidence, harm_percent: int) -> int:
    """How much likelier harm is than a gain: natural logarithm of the odds, in hundredths.

    >>> score(Evidence([0] * 4), 12), score(Evidence([150] * 4), 12)
    (-40, 269)
    """
    leads, controls = evidence.leads, evidence.controls
    harm = lead_of(harm_percent)
    gain = harm // THIRD
    known = sum([each * each for each in controls]) + USUAL_PAIRS * evidence.spread**2
    excess = 2 * sum(leads) - len(leads) * (harm - gain)
    return evidence.prior + 50 * excess * (harm + gain) * (len(controls) + USUAL_PAIRS) // known


def find(evidence: Evidence, harm_percent: int, pairs: int) -> SoFar:
    """What the windows of one workload, or of the host, say after so many pairs, seen or not."""
    likelier = score(evidence, harm_percent)
    if len(evidence.leads) >= LEAST_PAIRS and abs(likelier) >= ODDS:
        return SoFar.HARM if likelier > 0 else SoFar.FINE
    if pairs >= MOST_PAIRS:
        is_harm = likelier > evidence.doubt and len(evidence.leads) >= LEAST_PAIRS
        return SoFar.HARM if is_harm else SoFar.FINE
    return SoFar.OPEN
