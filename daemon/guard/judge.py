"""Is it harm? Windows with the policy against the windows just before them, as few as the harm allows.

**What is compared.** In each window one number of a workload, its *stretch*: how much longer than its
computing the vCPUs took that siblings wait for (`tally.py`). Of two windows, the *lead* of the later one is

    (later - earlier) / (later + earlier)   in thousandths:

0 for no change, 200 for 1.5 times as long, 333 for twice, never above 1000, so one wild window weighs little.

**Of whom.** Of each workload, and of the host: a policy is switched for all at once, and they share the
cores, so in each pair of windows the workload in the middle speaks for the host. That is a fifth less noisy
than a single one, and no single one can move it.

**What is harm.** The leads of windows with the policy over those before them, without it, must be

- **large**: `harm_percent` at least, in the mean;
- **sure**: so many standard errors above 0. How far leads are apart by chance is seen between windows
  of the same kind, one after the other; as these are few at first, together with the USUAL_SPREAD.

So harm of a factor of two takes three pairs, of 1.5 four, if the host is no noisier than usual.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple

WHOLE = 1000
"""Ratios are counted in thousandths."""

LEAST_PAIRS = 3
"""Pairs of windows for harm. Two may be two bursts: with two, one trial in 50 of a policy that did nothing
found harm in the records of docs/guard.md, "Noise"; with three, one in 100."""

ENOUGH_PAIRS = 4
"""Pairs of windows after which a policy without a sign of harm has passed."""

MOST_PAIRS = 12
"""Pairs of windows after which a trial ends. Harm that so many do not show is within the noise."""

USUAL_SPREAD, USUAL_PAIRS = 120, 4
"""How far leads are from 0 where nothing changes (docs/guard.md, "Noise"), and for how many of them that
counts."""

Z_SQUARED = 1100
"""In hundredths: 3.3 standard errors. As trials look again after each pair, and know the spread badly, that
is one false alarm in 25 trials under wild noise (tests/properties/test_guard.py)."""


class Finding(StrEnum):
    """What the windows so far say."""

    HARM = "harm"
    FINE = "fine"
    OPEN = "open"


class Evidence(NamedTuple):
    """The leads of the policy, a pair of windows each, and those between windows of the same kind."""

    leads: Sequence[int] = ()
    controls: Sequence[int] = ()

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

    >>> lead_of(10), lead_of(100)
    (47, 333)
    """
    return percent * WHOLE // (200 + percent)


def is_worse(evidence: Evidence, harm_percent: int) -> bool:
    """Whether it took longer with the policy by so much, surely or by chance."""
    return sum(evidence.leads) >= max(1, len(evidence.leads)) * lead_of(harm_percent)


def find(evidence: Evidence, harm_percent: int) -> Finding:
    """What the windows of one workload, or of the host, say."""
    pairs = len(evidence.leads)
    worse = is_worse(evidence, harm_percent)
    if worse and pairs >= LEAST_PAIRS and is_sure(evidence):
        return Finding.HARM
    if pairs >= MOST_PAIRS or (pairs >= ENOUGH_PAIRS and not worse):
        return Finding.FINE
    return Finding.OPEN


def is_sure(evidence: Evidence) -> bool:
    """Whether the mean lead is Z standard errors from 0.

    >>> is_sure(Evidence([300, 350])), is_sure(Evidence([300, 350], [-500, 600]))
    (True, False)
    """
    leads, controls = evidence
    total = sum(leads)
    known = sum([each * each for each in controls]) + USUAL_PAIRS * USUAL_SPREAD * USUAL_SPREAD
    return 100 * total * total * (len(controls) + USUAL_PAIRS) >= Z_SQUARED * len(leads) * known
