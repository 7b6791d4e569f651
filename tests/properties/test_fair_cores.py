"""What `critical` leaves a workload on two ideal cores whose turns go from one core to the other.

Each ring is two threads that hand one turn back and forth, one on each core. A turn takes longer where it is
crowded: of two rings, both are on one core or each has its own, and each turn that ends changes the one into
the other. Beside them a computing thread of the same workload on each core, and one of another workload.
"""

from __future__ import annotations

from dataclasses import dataclass

from dasec.critical import Critical
from dasec.plan import plan

from ..builders import PERIOD_MS, Group, Row, period
from .invariants import weights_after
from .test_fair_worlds import ALLOWED, NEUTRAL, PERIODS, SETTLED, TURN_MS

RINGS, CORES = 2, 2
ACTORS = RINGS * CORES


@dataclass(frozen=True)
class Halves:
    """A part of the time on each of two cores: where both rings are on one, and where each has its own."""

    ring: float
    own: float

    def share(self, of: float, rings: int) -> float:
        """Of a core with so many rings, for who has that weight."""
        return of / (rings * self.ring + self.own + NEUTRAL)

    @property
    def crowded(self) -> float:
        """For how much of the time both are on one core."""
        alone, together = self.share(self.ring, 1), self.share(self.ring, 2)
        return alone / (alone + together)

    def mean(self, crowded: float, apart: float) -> float:
        """Over time."""
        return self.crowded * crowded + (1 - self.crowded) * apart

    @property
    def ring_runs(self) -> float:
        """One ring, as part of a core."""
        return self.mean(self.share(self.ring, 2), self.share(self.ring, 1))

    @property
    def own_runs(self) -> float:
        """One computing thread."""
        return self.mean((self.share(self.own, 2) + self.share(self.own, 0)) / 2, self.share(self.own, 1))

    @property
    def got(self) -> float:
        """The workload, in cores."""
        return RINGS * self.ring_runs + CORES * self.own_runs

    def rows(self) -> list[Row]:
        """What its counters show after a period."""
        each = self.ring_runs * PERIOD_MS / CORES
        turns = round(each / TURN_MS)
        actors = [
            Row(
                each,
                ready_ms=PERIOD_MS / CORES - each,
                woken_by=[(row ^ 1, turns)],
                wakeups=turns,
                external=0,
                chain_ms=PERIOD_MS / CORES,
                weight=round(self.ring),
                core=row % CORES,
            )
            for row in range(ACTORS)
        ]
        burst = self.own_runs * PERIOD_MS
        bursts = Row(
            burst, ready_ms=PERIOD_MS - burst, wakeups=0, external=0, chain_ms=0, weight=round(self.own)
        )
        return [*actors, *[bursts] * CORES]


def test_a_workload_whose_turns_go_from_core_to_core_loses_nothing() -> None:
    policy = Critical()
    state = policy.initial_state()
    weights = [NEUTRAL] * (ACTORS + CORES)
    neutral = Halves(NEUTRAL, NEUTRAL).got
    gathered = 0.0
    for index in range(PERIODS):
        now = Halves(weights[0], weights[-1])
        gathered += now.got if index >= SETTLED else 0.0
        made = period(Group("a", now.rows()), cores=CORES, index=index)
        decision = policy.decide(made, state)
        planned = plan(made, decision)
        assert planned.violations == ()
        state = decision.state
        weights = weights_after(weights, planned)
    assert gathered / (PERIODS - SETTLED) / neutral > 1 - ALLOWED
