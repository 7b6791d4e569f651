"""Who gives way comes late, but has its time: what a workload is behind by its own lowered vCPUs.

**Nobody above neutral.** Weights follow the scores downwards only: the most critical vCPU of a workload keeps
its neutral weight, the others get down to a seventh of theirs. A workload whose weights are all at or below
neutral takes no time from anybody, whatever it does, pretends or waits for, on any core and in any stretch
of time. So nothing has to be estimated for its neighbours' sake: not what its threads would have wanted at
other weights, which no counter tells, and not what threads want that nobody opted in.

Where every workload does so, all that is waited for has seven times the weight of all that is not, as if
it had been raised.

**What it may cost the workload itself.** A lowered vCPU that sleeps now and then had what it wanted, only
later, if its work comes from outside. One that *always wants to run* loses to whoever is not lowered as much.
By its weight and its waiting it knows what it met, and so what it would have had at its neutral weight, as
far as those who were lowered beside it always wanted to run, too. That is added up, and a workload that is
behind by a little of its time has its vCPUs lowered less, and by more not at all. So it pays for one period,
and what computes all the time is let alone. What is behind fades when nobody of the workload wants to run
always: it has caught up. What a workload takes from itself alone does not count.

An estimate that is wrong costs its own workload some time, or some preference, and nobody else anything.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ..tsa import MAX_WEIGHT_SPAN
from .crowd import Cpus
from .scores import FULL

ALWAYS_PERCENT = 95
"""Of a period, for whoever always wants to run; the rest is for clocks that are not read at the same time."""

HORIZON_NS = 10_000_000_000
"""What is asked for: in ten seconds nobody loses more than a fiftieth of its due."""

BEHIND_DIVISOR = 2000
"""A workload may be behind by this part of its time in HORIZON_NS, half a thousandth, beside the period in
which that is reached. With five times as much, one of 400 workloads that play tricks had 2.4 % of its
neighbour's time for 10 s (tests/properties/test_tricks.py): work that came late, but all at once."""

FORGIVEN_DIVISOR = 2000
"""Of its time, what a workload catches up unseen, so that a wrong estimate is forgotten."""

KEPT_PERCENT = 75
"""Of what it is behind, after a period in which nobody of the workload always wanted to run: who sleeps has
caught up, but the next scene may be like the last. With 50 that neighbour lost 2.1 %."""

SURPRISE_NS = 350_000_000
"""By so much the work of one period may become late where whoever is lowered wants to run all of a sudden.
Periods of up to 0.4 s lower as much as they would; the longest that there are (budget.py) hardly lower
anybody."""


class Claimant(NamedTuple):
    """One vCPU in a period: whose it is, its weight then and the neutral one, how long it ran and waited."""

    home: str
    weight: int
    neutral: int
    run_ns: int
    ready_ns: int

    @property
    def lent(self) -> int:
        """By how much its weight is lowered. One above neutral is somebody else's, and lends nothing."""
        return max(0, self.neutral - self.weight)


def behind_ns(length_ns: int, places: Mapping[Cpus, Sequence[Claimant]]) -> dict[str, int]:
    """By how much each workload may have fallen behind in a period; only those that have a vCPU which always
    wanted to run."""
    behind: dict[str, int] = {}
    for cpus, claimants in places.items():
        if not cpus:
            continue
        always = [
            each for each in claimants if (each.run_ns + each.ready_ns) * 100 >= length_ns * ALWAYS_PERCENT
        ]
        lent = sum([each.lent for each in always])
        more = max(0, len(always) - len(cpus))  # than one on each CPU
        lost_ns: dict[str, int] = {}
        for each in always:
            others = max(1, len(always) - 1)
            beside = (lent - each.lent) * more // (others * len(cpus))
            lost_ns[each.home] = lost_ns.get(each.home, 0) + max(0, _due_ns(each, beside) - each.run_ns)
        for home, ns in lost_ns.items():
            own_ns = sum([each.run_ns for each in claimants if each.home == home])
            behind[home] = behind.get(home, 0) + max(0, min(ns, len(cpus) * length_ns - own_ns))
    return behind


def _due_ns(one: Claimant, beside: int) -> int:
    """What it would have had at its neutral weight, with so much more weight beside it."""
    run_ns = max(1, one.run_ns)
    met = one.weight * one.ready_ns // run_ns + beside
    return (one.run_ns + one.ready_ns) * one.neutral // max(1, one.neutral + met)


class Lateness(NamedTuple):
    """How late a workload is, and which part of its neutral weight (thousandths) each vCPU has at least."""

    late_ns: int
    least: int


def lateness(late_ns: int, behind: int | None, run_ns: int, usual_ns: int, length_ns: int) -> Lateness:
    """After a period in which a workload ran for so long and fell behind by so much; None: nobody of it
    always wanted to run. `usual_ns`: what it runs in a period, of late."""
    if behind is None:
        late_ns = late_ns * KEPT_PERCENT // 100
    allowed_ns = max(1, usual_ns * (HORIZON_NS // BEHIND_DIVISOR) // length_ns)
    late_ns = max(0, min(allowed_ns, late_ns + (behind or 0) - run_ns // FORGIVEN_DIVISOR))
    sudden = FULL - FULL * SURPRISE_NS // length_ns
    return Lateness(late_ns, max(0, sudden, FULL * late_ns // allowed_ns))


def lowered(neutral: Sequence[int], scores: Sequence[int], least: int, weight_ratio: int) -> list[int]:
    """The weight of each: neutral for the highest score, and less in proportion for lower ones."""
    rise = weight_ratio - 1
    top = FULL + rise * max(scores, default=FULL)
    return [
        max(
            each * (FULL + rise * score) // top,
            each * least // FULL,
            -(-each // MAX_WEIGHT_SPAN),
        )
        for each, score in zip(neutral, scores, strict=True)
    ]
