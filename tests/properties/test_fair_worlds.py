"""What `critical` leaves two workloads on one saturated core of an ideal kernel, whatever they are.

The core divides itself by weight among whoever wants to run, at any moment. One workload has a chain, in
which a turn goes around (each member wakes the next one), and threads that compute; the other computes only.
A chain has so much work a period, or work without end: then it is a ring of fakers, and one always computes.
The policy may see the other workload or not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from hypothesis import given, settings
from hypothesis import strategies as st

from dasec.critical import Critical
from dasec.plan import plan

from ..builders import PERIOD_MS, Group, Row, period
from .invariants import weights_after

NEUTRAL = 1024
SETTLED, PERIODS = 30, 130
TURN_MS = 0.5
IDLING = 0.02
ALLOWED = 0.02


@dataclass(frozen=True)
class World:
    """Members of the chain, computing threads beside it, and those of the other workload; the chain's work a
    period as part of a core, None for a ring; whether the other workload is managed, too."""

    members: int
    own: int
    others: int
    work: float | None
    managed: bool = False

    def chain_runs(self, weight: float, own: float) -> tuple[float, float]:
        """For how much of a period the chain computes, and for how much it wants to."""
        rate = weight / (weight + self.own * own + self.others * NEUTRAL)
        active = 1.0 if self.work is None else min(1.0, self.work / rate)
        return rate * active, active

    def rows(self, weights: Sequence[int]) -> tuple[list[Row], float]:
        """What the first workload's counters show after a period under these weights; the time it got."""
        chain, own = weights[: self.members], weights[self.members :]
        runs, active = self.chain_runs(sum(chain) / len(chain), sum(own) / len(own))
        hungry = sum(own) / (sum(own) + self.others * NEUTRAL) * (1 - runs)
        turns = round(runs * PERIOD_MS / TURN_MS / self.members)
        made = [
            Row(
                runs * PERIOD_MS / self.members,
                ready_ms=(active - runs) * PERIOD_MS / self.members,
                woken_by=[((row - 1) % self.members, turns)] if turns else [],
                wakeups=turns,
                external=0,
                chain_ms=active * PERIOD_MS / self.members,
                weight=chain[row],
            )
            for row in range(self.members)
        ]
        each = hungry * PERIOD_MS / self.own
        bursts = [
            Row(each, ready_ms=PERIOD_MS - each, wakeups=0, external=0, chain_ms=0, weight=weight)
            for weight in own
        ]
        return made + bursts, runs + hungry

    def groups(self, weights: Sequence[int]) -> tuple[list[Group], float]:
        """The counters of all that the policy sees, and the time that the first workload got."""
        rows, time = self.rows(weights)
        each = (1 - time) * PERIOD_MS / self.others
        beside = Row(each, ready_ms=PERIOD_MS - each, wakeups=0, external=0, chain_ms=0)
        return [Group("a", rows), *[Group("b", [beside] * self.others)] * self.managed], time


def got(world: World, quiet: int = 0) -> float:
    """The first workload's CPU time under the policy, as ratio to what it gets without. Its chain has hardly
    anything to do in the first `quiet` periods."""
    policy = Critical()
    state = policy.initial_state()
    weights = [NEUTRAL] * (world.members + world.own)
    neutral = world.rows(weights)[1]
    gathered = 0.0
    for index in range(PERIODS):
        present = replace(world, work=IDLING) if index < quiet else world
        groups, time = present.groups(weights)
        gathered += time if index >= SETTLED else 0.0
        made = period(*groups, cores=1, index=index)
        decision = policy.decide(made, state)
        planned = plan(made, decision)
        assert planned.violations == ()
        state = decision.state
        weights = weights_after(weights, planned)
    return gathered / (PERIODS - SETTLED) / neutral


few = st.integers(1, 4)
rings = st.builds(
    World, members=st.integers(2, 6), own=few, others=few, work=st.none(), managed=st.booleans()
)
services = st.builds(
    World,
    members=st.integers(2, 6),
    own=few,
    others=few,
    work=st.floats(0.02, 0.9, allow_nan=False),
    managed=st.booleans(),
)


@settings(max_examples=40)
@given(world=rings)
def test_a_ring_of_fakers_gains_nothing_and_loses_nothing(world: World) -> None:
    assert abs(got(world) - 1) < ALLOWED


@settings(max_examples=40)
@given(world=rings)
def test_a_ring_that_was_quiet_until_it_was_raised_soon_gains_nothing_either(world: World) -> None:
    assert abs(got(world, quiet=SETTLED - 10) - 1) < ALLOWED


@settings(max_examples=40)
@given(world=services)
def test_a_service_takes_nothing_from_its_neighbour(world: World) -> None:
    assert got(world) < 1 + ALLOWED


@settings(max_examples=40)
@given(world=services)
def test_a_service_that_its_neutral_weight_would_do_for_loses_nothing(world: World) -> None:
    assert world.work is not None
    wanted = world.chain_runs(NEUTRAL, NEUTRAL)[1]
    if wanted < 0.7:
        assert got(world) > 1 - ALLOWED
