"""What workloads gain that do anything and pretend anything, beside others that compute, on one ideal core.

The core divides itself by weight among whoever wants to run. Scripts are drawn with a fixed seed: what is
asserted is the mean of many, and a search among more would find a worse one. Gained is time beyond what
neutral weights would give to those who want to run just as they did.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from statistics import fmean
from typing import NamedTuple

import pytest

from dasec.budget import LONGEST_NS
from dasec.critical import Critical
from dasec.plan import plan

from ..builders import MS, PERIOD_MS, Group, Row, period
from .invariants import weights_after

NEUTRAL = 1024
VCPUS, SCRIPTS, LOOKS = 4, 40, 80
LATE_MS = LONGEST_NS / MS


class Act(NamedTuple):
    """What one vCPU does in a look: which part of it it needs, who woke it, and what else was counted."""

    needs: float
    woken_by: tuple[tuple[int, int], ...]
    wakeups: int
    external: int
    chain: float


class Trick(NamedTuple):
    """Scenes of so many looks in turn, each with an act a vCPU, beside so many threads that compute."""

    scenes: Sequence[Sequence[Act]]
    looks: int
    others: int


def drawn(chance: random.Random) -> Trick:
    wakers: list[tuple[tuple[int, int], ...]] = [(), ((0, 5),), ((1, 50), (2, 50)), ((3, 1),)]
    scenes = [
        [
            Act(
                chance.choice([0.0, 0.01, 0.05, 0.3, 0.5, 1.0]),
                chance.choice(wakers),
                chance.choice([0, 1, 50, 200]),
                chance.choice([0, 100]),
                chance.choice([0.0, 1.0]),
            )
            for _ in range(VCPUS)
        ]
        for _ in range(chance.randint(1, 4))
    ]
    return Trick(scenes, chance.choice([1, 3, 7, 20]), chance.choice([1, 2, 4]))


def shares(needs: Sequence[float], weights: Sequence[float]) -> list[float]:
    """Of the core: in proportion to weight, nobody more than it needs."""
    got = [0.0] * len(needs)
    left, unmet = 1.0, set(range(len(needs)))
    while unmet:
        total = sum(weights[each] for each in unmet)
        met = {each for each in unmet if needs[each] * total <= left * weights[each]}
        for each in met or unmet:
            got[each] = needs[each] if met else left * weights[each] / total
        left -= sum(got[each] for each in met)
        unmet = unmet - met if met else set()
    return got


def gained(trick: Trick, look_ms: float) -> float:
    """The part of the core that the workload has more, all looks together."""
    policy = Critical()
    state = policy.initial_state()
    weights = [NEUTRAL] * VCPUS
    sum_gained = 0.0
    for index in range(LOOKS):
        acts = trick.scenes[index // trick.looks % len(trick.scenes)]
        needs = [act.needs for act in acts] + [1.0] * trick.others
        got = shares(needs, weights + [NEUTRAL] * trick.others)
        wanted = [need if part == need else 1.0 for need, part in zip(needs, got, strict=True)]
        neutral = shares(wanted, [NEUTRAL] * len(wanted))
        sum_gained += sum(got[:VCPUS]) - sum(neutral[:VCPUS])
        rows = [
            _row(act, part * look_ms, (want - part) * look_ms, look_ms, weight)
            for act, part, want, weight in zip(acts, got, wanted, weights, strict=False)
        ]
        beside = [
            _row(Act(1.0, (), 0, 0, 0), each * look_ms, (1 - each) * look_ms, look_ms) for each in got[VCPUS:]
        ]
        made = period(Group("a", rows), Group("b", beside), cores=1, index=index, length_ms=look_ms)
        decision = policy.decide(made, state)
        state = decision.state
        weights = weights_after(weights, plan(made, decision))
    return sum_gained / LOOKS


def _row(act: Act, run_ms: float, ready_ms: float, look_ms: float, weight: int = NEUTRAL) -> Row:
    periods = round(look_ms / PERIOD_MS)
    return Row(
        run_ms,
        ready_ms=ready_ms,
        woken_by=[(waker, count * periods) for waker, count in act.woken_by],
        wakeups=act.wakeups * periods,
        external=act.external * periods,
        chain_ms=act.chain * look_ms,
        weight=weight,
    )


@pytest.mark.parametrize("look_ms", [PERIOD_MS, LATE_MS])
def test_whatever_workloads_pretend_they_gain_less_than_a_hundredth_of_a_core(look_ms: float) -> None:
    # -0.003 and 0.004; 0.018 and 0.023 where raised weights are not paid for
    chance = random.Random(1)
    assert fmean(gained(drawn(chance), look_ms) for _ in range(SCRIPTS)) < 0.01
