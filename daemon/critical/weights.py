"""From scores to weights, with a sum that takes nothing from other workloads and gives nothing to them.

**Which sum.** What a weight takes from others on a core, it takes while its vCPU wants to run. So not the
plain sum of weights is kept, but the sum weighted by demand (the time running or ready):

    sum of weight × demand = sum of neutral weight × demand − what is owed

A vCPU that hardly runs lends hardly anything, and one that never runs nothing, without any threshold. With
the plain sum, one vCPU that waits and two that compute would leave the workload a third of its own weight
to compute with.

**What counts as demand.** A weight changes what its vCPU gets only if there is more to be had. Critical
vCPUs that together run less than *one* that always wants to (a fair turn) would get just that at their
neutral weights, too, only later, and the others share what they leave, as before. So their demand is left
out of both sums: they are raised, and nobody is lowered for it. Were it counted, background would be
lowered for a raise that takes nothing, and an honest service loses up to three tenths of its time
(experiments/studies/fairness). The nearer they come to a fair turn, the more is counted, and all of it from
there on: threads of which one always computes, and which wake each other only to look critical, get exactly a
fair turn at neutral weights.

What a fair turn is, is seen in all who wait for the same CPUs (`crowd.py`).

**What is owed.** Demand changes after it was measured. Each period the weights that were in force are
charged for the demand that there was, on the terms on which they were given: balance += sum of (weight −
neutral) × (run + ready). A workload that got more than is neutral pays back in the next half second, one that
got less is repaid; at most a quarter of its sum at a time. So whatever a workload does, and however it
guesses what we will do, over time it competes with its neutral weight.

A workload that owes much prefers nobody until it has paid.

**Where a group around the workload competes,** its weights divide what is the group's, whatever their sum is.
So nothing is owed there (docs/decisions/0101-owed-to-nobody.md).

**Inside.** Weights are in proportion to neutral × (1 + (ratio - 1) × score): a range of 7 : 1. They stay
within [1/8, 8] × neutral. A vCPU that sleeps keeps its place in that order, so it is right at once when it
wakes up, until it is forgotten and returns to neutral. Nobody can be starved: an eighth of neutral is the
least.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import mul
from typing import NamedTuple

from ..tsa import MAX_WEIGHT_SPAN
from .scores import FULL

PAY_DIVISOR = 4
"""At most this part of the sum is paid back or repaid at a time, so that a debt starves nobody."""


TRUST_DIVISOR = 2
"""A workload that owes more than this part of its sum prefers nobody until it has paid: what can be gained by
pretending is then bounded, however often it is tried (tests/properties/test_critical.py)."""


SURE_DIVISOR = 10
"""Critical vCPUs that come nearer than this part to a fair turn are counted, the more the nearer. Without any
margin, rings of fakers would be free whenever chance lets one of them wait longer."""


class Balance(NamedTuple):
    """What a workload owes, in weight × ns; and `free`, the part of critical demand (in thousandths) that was
    left out when the present weights were given."""

    owed: int = 0
    free: int = 0


class Claims(NamedTuple):
    """The judged vCPUs of a workload, in columns: their weight when nobody is preferred, their remembered
    demand, and their scores."""

    neutral: Sequence[int]
    demand_ns: Sequence[int]
    scores: Sequence[int]

    def fair(self) -> int:
        """The sum by demand when nobody is preferred."""
        return sum(map(mul, self.neutral, self.demand_ns))

    def without(self, part: int) -> Claims:
        """With that part (in thousandths) of critical demand left out."""
        if not part:
            return self
        kept = [
            ns * (FULL * FULL - part * score) // (FULL * FULL)
            for ns, score in zip(self.demand_ns, self.scores, strict=True)
        ]
        return self._replace(demand_ns=kept)


def free(claims: Claims, run_ns: Sequence[int], fair_ns: int) -> int:
    """The part of critical demand that takes nothing from others, in thousandths."""
    left_ns = fair_ns - sum(map(mul, claims.scores, run_ns)) // FULL
    return max(0, min(FULL, left_ns * SURE_DIVISOR * FULL // fair_ns)) if fair_ns else 0


def divide(claims: Claims, weight_ratio: int, owed: int = 0) -> list[int]:
    """The weight of each; `owed` is in weight × ns."""
    rise = weight_ratio - 1
    drawn = [
        neutral * (FULL + rise * score) for neutral, score in zip(claims.neutral, claims.scores, strict=True)
    ]
    taken = sum(map(mul, drawn, claims.demand_ns))
    if not taken:
        return list(claims.neutral)
    fair = claims.fair()
    most = fair // PAY_DIVISOR
    target = fair - max(-most, min(most, owed))
    return [
        min(max(weight * target // taken, -(-neutral // MAX_WEIGHT_SPAN)), neutral * MAX_WEIGHT_SPAN)
        for weight, neutral in zip(drawn, claims.neutral, strict=True)
    ]


def is_off(present: int, wanted: int, deadband_percent: int) -> bool:
    """Whether a weight is far enough from the wanted one to be written again."""
    return abs(wanted - present) * 100 > present * deadband_percent


def charged(owed: int, charges: Sequence[tuple[int, int, int]], credit: int) -> int:
    """The balance after a period, from (weight in force, neutral, demand in the period) of each vCPU.

    Credit is not saved up beyond `credit`: what was not used in time is lost.
    """
    return max(owed + sum([(weight - neutral) * ns for weight, neutral, ns in charges]), -credit)


def settle(
    claims: Claims, owed: int, charges: Sequence[tuple[int, int, int]], weight_ratio: int
) -> tuple[int, list[int]]:
    """A workload's balance after a period with these charges, and the weights under it."""
    fair = claims.fair()
    owed = charged(owed, charges, fair // PAY_DIVISOR)
    if owed * TRUST_DIVISOR > fair:
        claims = claims._replace(scores=[FULL] * len(claims.scores))
    return owed, divide(claims, weight_ratio, owed)
