"""How soon to look again, and whether to follow wake-ups until then.

A look costs what a period costs, whether it changes anything or not, and following a wake-up costs whoever
wakes up. Where all vCPUs of a workload are equally critical neither changes anything
(docs/measurements.md, "What looking costs"; docs/decisions/0102-looking-costs.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..model import IDLE, Period
from .memory import Ageing, Memory

LOOKS = 6
"""So many looks without a wish, and the next ones are half as often. With a memory of 6.7 periods whatever
was there before them is then half forgotten."""

REST_PERIODS = 2
"""From one look to the next where all is calm. With 4, the policy got 62 % of the oracle's gain in a load
whose background begins after a calm second, with 2 it got 69 % in another run (docs/measurements.md, "What
looking costs")."""

PAUSE_LOOKS = 60
"""So many looks without a wish, and wake-ups are followed now and then: after 9 s, as later looks rest. What
begins in a pause is answered two to five periods later than else (docs/overhead.md, "How soon a step is
answered"), so steps that come every few seconds should meet none."""

PAUSE_NS = 960_000_000
"""For so long they are not followed, if nothing begins. With the looks after it a step that nothing shows
but who wakes whom is answered within 25 periods (tests/unit/test_critical_pauses.py)."""

LOOKS_BETWEEN = 2
"""Looks between two pauses. One alone sees a seventh of what a memory of 6.7 periods holds."""

LOOKS_AFTER_A_STIR = 4
"""Looks after a pause that ended early, the first of them after one period: who has come is judged then
(memory.py, SEASONED), and it is found out whether anything has begun."""

LONGEST_LOOK_NS = 352_000_000
"""Where looks are further apart (four periods, and a tenth for clocks) there is no pause: with 1 % of a core
for 384 vCPUs and more a step was answered after 26 to 36 periods instead of 17 to 19
(experiments/studies/settling)."""

STIR_PERCENT = 25
"""A vCPU that wants so much more of a core than it is remembered to, and twice as much, begins something:
background that comes back does, on crowded cores as well (docs/overhead.md, "How soon a step is answered").
Who serves at half of a core's time cannot."""


class Calm(NamedTuple):
    """How many looks in a row found nothing to do, and for how long wake-ups need not be followed."""

    looks: int = 0
    pause_ns: int = 0

    @property
    def rest(self) -> int:
        """After how many periods to look again."""
        return REST_PERIODS if self.looks >= LOOKS else 1

    @property
    def is_long(self) -> bool:
        """Has nothing been done for so long that there may be a pause?"""
        return self.looks + 1 >= PAUSE_LOOKS

    def stirred(self) -> Calm:
        """Something is not known well enough: a few looks will tell."""
        return Calm(min(self.looks, PAUSE_LOOKS - LOOKS_AFTER_A_STIR))

    def after(self, length_ns: int, *, acts: bool, unjudged: bool, in_force: bool) -> Calm:
        """After one more look, at a period of that length: whether the policy `acts`, somebody is there who
        is not known well enough to be judged, and anything of ours is `in_force` or should be."""
        if acts:
            return Calm()
        if unjudged:
            return self.stirred()
        if length_ns > LONGEST_LOOK_NS:
            return Calm(self.looks + 1).stirred()
        if in_force or not self.is_long:
            return Calm(min(self.looks + 1, PAUSE_LOOKS - 1))
        return Calm(PAUSE_LOOKS - LOOKS_BETWEEN, PAUSE_NS)

    def after_unwatched(self, length_ns: int) -> Calm:
        """After a look in a pause. It ends with the look that is next to its end: they come a little early
        and late."""
        if length_ns > LONGEST_LOOK_NS:
            return self.stirred()
        left_ns = self.pause_ns - length_ns
        return self._replace(pause_ns=left_ns if left_ns > length_ns // 2 else 0)


def begins(period: Period, memories: Sequence[Memory], ageing: Ageing) -> bool:
    """Whether a vCPU wants much more than it is remembered to, or a limit stops anybody."""
    if any(limits.throttled_ns for limits in period.limits.values()):
        return True
    fades_percent = 100 - ageing.decay_percent
    known = {memory.vcpu: memory.busy_ns * fades_percent // 100 for memory in memories}
    least_ns = period.length_ns * STIR_PERCENT // 100
    for vcpu, used in period.usage.items():
        if used is not IDLE:
            busy_ns, usual_ns = used.consumed_ns + used.ready_ns, known.get(vcpu, 0)
            if busy_ns > usual_ns + max(usual_ns, least_ns):
                return True
    return False
