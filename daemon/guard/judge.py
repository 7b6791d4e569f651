"""Is it harm? Windows with the policy against windows without it, as few as the harm allows.

**What is compared.** In each window one number of a workload: how much longer than its computing the vCPUs
took that siblings wait for, (run + ready) / run, in thousandths (`tally.py`). It differs between windows
anyway, and a few long bursts make it differ by a factor. So two things are asked for:

- **how much**: the median with the policy is above the median without it by `harm_percent` at least;
- **how surely**: ranks (Mann and Whitney's U), which one wild window cannot win. For large harm less evidence
  suffices, because waiting for more costs the user more.

| the ratio is at least | z of U is at least | so with windows that never overlap |
|---|---|---|
| 1.5 | 1.9 | 3 of each |
| 1 + harm_percent / 100 | 2.6 | 5 of each |

With chance alone, 3 of each never overlap in that order once in 20 times, and the ratio has to be there too
(tests/properties/test_guard.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from statistics import median_high, median_low

WHOLE = 1000
"""Ratios are counted in thousandths."""

ENOUGH_PAIRS = 3
"""Pairs of windows after which a policy without a sign of harm has passed."""

MOST_PAIRS = 8
"""Pairs of windows after which a trial ends. Harm that so many do not show is within the noise."""


class Finding(StrEnum):
    """What the windows so far say."""

    HARM = "harm"
    FINE = "fine"
    OPEN = "open"


LARGE = 1500
"""A ratio from which on less evidence is enough."""

LARGE_Z_SQUARED, Z_SQUARED = 361, 676
"""The squares of z, in hundredths, that harm must reach if it is large, and if it is not."""


def ratio(without: Sequence[int], with_it: Sequence[int]) -> int:
    """The median with the policy to the median without it, in thousandths; of two medians the milder."""
    return median_low(with_it) * WHOLE // max(1, median_high(without))


def find(without: Sequence[int], with_it: Sequence[int], harm_percent: int) -> Finding:
    """What the windows of one workload say."""
    pairs = min(len(without), len(with_it))
    if not pairs:
        return Finding.OPEN
    seen = ratio(without, with_it)
    harm = WHOLE + WHOLE * harm_percent // 100
    needed = LARGE_Z_SQUARED if seen >= LARGE else Z_SQUARED
    if seen >= harm and is_sure(without, with_it, needed):
        return Finding.HARM
    if pairs >= MOST_PAIRS or (pairs >= ENOUGH_PAIRS and seen < harm):
        return Finding.FINE
    return Finding.OPEN


def is_sure(without: Sequence[int], with_it: Sequence[int], z_squared: int) -> bool:
    """Whether those with the policy rank above the others by that z (its square, in hundredths).

    >>> is_sure([1, 2, 3], [4, 5, 6], 361)
    True
    >>> is_sure([1, 2, 4], [3, 5, 6], 361)
    False
    """
    lead = sum([(one > other) - (one < other) for one in with_it for other in without])
    product = len(without) * len(with_it)
    # U = (product + lead) / 2, with mean product / 2 and variance product × (n + m + 1) / 12
    return lead > 0 and 300 * lead * lead >= z_squared * product * (len(without) + len(with_it) + 1)
