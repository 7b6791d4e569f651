"""How much of the host the daemon may take, and how late the next look must therefore be.

A look costs CPU time, and the more vCPUs there are the more (docs/overhead.md), but the daemon may have only
a fixed part of the cores that it manages. So each look is paid out of what was earned since the one before,
and the next one comes when the debt is paid: **cost is bounded, and with many vCPUs corrections come later
instead.**

A change needs a dozen looks soon after each other: new demand is judged, weights are written, and a few more
looks see whether that was it. So a calm time must not use up what it earns: while a policy rests, it looks so
seldom that a third is saved, and the first looks after a change need not wait.

Only a policy whose rule means the same over a longer time may be made to wait (`Decision.can_wait`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from .model import Decision

LEAST_PERCENT = 1.0
"""Of one core: what a node's operator gives to a daemon however small the host is."""

PART = 0.001
"""Of all cores that it manages: from 10 cores on more than the least. On 80 cores that is 8 % of one, and 256
vCPUs can be looked at every period, where 1 % of one core let a look come every 0.7 s (docs/overhead.md)."""

LONGEST_NS = 1_600_000_000
"""No look is later than this, so that a rule stays alive; what cannot be paid by then is forgiven. A step of
load is then corrected within 20 periods of 80 ms, where 25 are asked for (tests/unit/test_critical.py)."""

SAVED_NS = 10_000_000_000
"""The earnings of so much time can be saved up: by hand, for 25 looks of 4 ms, one a period for 2 s."""

CALM_PERCENT = 67
"""Of its earnings, what a calm time may use. Without this, 16 vCPUs on two busy cores used all of them for
looks of 1.6 ms, and after a step of load the next ones came 240 to 560 ms apart (docs/decisions/0023)."""


def default_percent(cores: int) -> float:
    """Of one core, where so many are managed and nobody has said how much."""
    return max(LEAST_PERCENT, round(cores * PART * 100, 1))


class Account(NamedTuple):
    """What is left of the earnings, below 0 a debt; as of a look's clock and the CPU time used until then."""

    balance_ns: int
    clock_ns: int
    cpu_ns: int


class Outlay(NamedTuple):
    """CPU time since the look before, and after how many periods the next look is."""

    cpu_ns: int = 0
    rest: int = 1


@dataclass(frozen=True, slots=True)
class Budget:
    """So many percent of one core, for looks at most once a period."""

    percent: float
    period_ns: int

    def pay(self, account: Account, clock_ns: int, cpu_ns: int, decision: Decision) -> tuple[Account, Outlay]:
        """The account after a look that decided that, and when the next one is."""
        balance_ns = account.balance_ns + self._earned_ns(clock_ns - account.clock_ns)
        balance_ns -= cpu_ns - account.cpu_ns
        longest_ns = self._longest() * self.period_ns
        floor_ns, ceiling_ns = -self._earned_ns(longest_ns), self._earned_ns(SAVED_NS)
        balance_ns = max(floor_ns, min(balance_ns, ceiling_ns))
        spent_ns = cpu_ns - account.cpu_ns
        rest = decision.rest
        if decision.can_wait:
            rest = max(rest, self._paid(-balance_ns))
            if decision.rest > 1 and balance_ns < ceiling_ns:
                rest = max(rest, self._paid(spent_ns * 100 // CALM_PERCENT))
        return Account(balance_ns, clock_ns, cpu_ns), Outlay(spent_ns, rest)

    def _paid(self, debt_ns: int) -> int:
        """In how many periods that is earned, or forgiven."""
        periods = -(-debt_ns // max(1, self._earned_ns(self.period_ns)))
        return min(periods, self._longest())

    def _earned_ns(self, passed_ns: int) -> int:
        return int(passed_ns * self.percent / 100)

    def _longest(self) -> int:
        """In periods."""
        return max(1, LONGEST_NS // self.period_ns)


UNBOUNDED = Budget(100.0, LONGEST_NS)
"""Never makes a look wait."""
