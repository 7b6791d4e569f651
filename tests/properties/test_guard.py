"""What holds of the guard whatever happens: it is a policy like any other, and undoes what it lets happen."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dasec.guard import Guarded, GuardParameters, GuardState, Verdict
from dasec.guard.judge import Finding, find
from dasec.guard.switch import held
from dasec.model import Knobs, Period, PolicyState, VcpuId
from dasec.plan import plan
from dasec.policy import POLICIES, Parameters, policy_named

from ..builders import Group, Row, period
from ..unit.guard.world import World
from .invariants import after
from .strategies import groups, names, rows

EAGER = GuardParameters(backoff_periods=7, recheck_periods=5)
CORES = 4


@st.composite
def lives(draw: st.DrawFn) -> list[Period]:
    """Some tables of the same vCPUs, played again and again for long enough to be tried."""
    first = [draw(groups(name, CORES)) for name in names[: draw(st.integers(1, 3))]]
    tables = [
        first,
        *[[_at_other_work(draw, group) for group in first] for _ in range(draw(st.integers(0, 2)))],
    ]
    chance = random.Random(draw(st.integers(0, 99)))
    return [_period(chance.choice(tables), index) for index in range(draw(st.integers(10, 60)))]


def _at_other_work(draw: st.DrawFn, group: Group) -> Group:
    """The same vCPUs with the same knobs; what they do is another thing."""
    others = draw(st.lists(rows(CORES, len(group.rows)), min_size=len(group.rows), max_size=len(group.rows)))
    return replace(group, rows=[_as(one, other) for one, other in zip(group.rows, others, strict=True)])


def _as(one: Row, other: Row) -> Row:
    return replace(
        other,
        weight=one.weight,
        latency_us=one.latency_us,
        core=one.core,
        allowed=one.allowed,
        movable=one.movable,
    )


def _period(table: list[Group], index: int) -> Period:
    return period(*table, cores=CORES, index=index)


@settings(max_examples=40)
@given(life=lives(), name=st.sampled_from(sorted(POLICIES)))
def test_whatever_happens_the_guard_decides_twice_alike_and_without_the_policy_all_is_as_before(
    life: list[Period], name: str
) -> None:
    policy = Guarded(policy_named(name, Parameters()), EAGER)
    state: PolicyState = policy.initial_state()
    knobs: dict[VcpuId, Knobs] = {}
    for made in life:
        present = {vcpu: knobs.get(vcpu, first) for vcpu, first in made.knobs.items()}
        there = replace(made, knobs=present)
        decision = policy.decide(there, state)
        assert decision == policy.decide(there, state)
        assert decision.knobs.keys() <= there.knobs.keys()
        planned = plan(there, decision)
        knobs.update(after(there, planned).knobs)
        state = decision.state
        assert isinstance(state, GuardState)
        if state.trial and state.trial.is_without:
            assert planned.violations == ()
            later = replace(there, knobs={vcpu: knobs[vcpu] for vcpu in there.knobs})
            assert held(state.prior, later) == ()


@given(st.lists(st.integers(1, 10**6), max_size=8), st.lists(st.integers(1, 10**6), max_size=8))
def test_windows_are_never_harm_both_ways(without: list[int], with_it: list[int]) -> None:
    both = find(without, with_it, 10), find(with_it, without, 10)
    assert both.count(Finding.HARM) <= 1


@given(st.lists(st.tuples(st.integers(100, 10**6), st.integers(100, 10**6)), min_size=8, max_size=12))
def test_a_trial_comes_to_an_end(pairs: list[tuple[int, int]]) -> None:
    assert find([one for one, _ in pairs], [other for _, other in pairs], 10) is not Finding.OPEN


@pytest.mark.parametrize("spread", [0.2, 0.5, 1.5])
def test_noise_alone_is_called_harm_in_few_trials_even_under_wild_noise(spread: float) -> None:
    chance = random.Random(7)
    trials, harm = 2000, 0
    for _ in range(trials):
        without: list[int] = []
        with_it: list[int] = []
        found = Finding.OPEN
        while found is Finding.OPEN:
            without.append(round(2000 * chance.lognormvariate(0, spread)))
            with_it.append(round(2000 * chance.lognormvariate(0, spread)))
            found = find(without, with_it, 10)
        harm += found is Finding.HARM
    assert harm <= trials * 0.085


@pytest.mark.parametrize("factor", [3, 4])
def test_large_harm_is_found_in_most_first_trials_in_spite_of_noise(factor: int) -> None:
    found = 0
    for seed in range(40):
        world = World(lambda _, acted: 2.0 * factor if acted else 2.0, noise=0.3, seed=seed)
        world.run(25)
        found += all(each.is_neutral for each in world.standings.values()) and not world.in_force()
    assert found >= 36


def test_noise_around_a_policy_that_gains_does_not_turn_it_off() -> None:
    off = 0
    for seed in range(40):
        world = World(lambda _, acted: 2.0 if acted else 3.5, noise=0.3, seed=seed)
        world.run(120)
        off += any(each.verdict is not Verdict.FINE for each in world.standings.values())
    assert off <= 1
