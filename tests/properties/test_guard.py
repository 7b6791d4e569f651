"""What holds of the guard whatever happens: it is a policy like any other, and undoes what it lets happen."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dasec.guard import Guarded, GuardParameters, GuardState, Verdict
from dasec.guard.judge import MOST_PAIRS, Evidence, Finding, find
from dasec.guard.state import Trial
from dasec.guard.switch import held
from dasec.guard.trial import is_over, weigh
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


stretches = st.lists(st.tuples(st.integers(1000, 10**6), st.integers(1000, 10**6)), max_size=12)


def evidence(pairs: list[tuple[int, int]]) -> Evidence:
    """Of one workload that was seen in these pairs of windows."""
    return weigh(Trial(windows=tuple((("a", one),) for pair in pairs for one in pair))).workloads.get(
        "a", Evidence()
    )


@given(stretches)
def test_windows_are_never_harm_both_ways(pairs: list[tuple[int, int]]) -> None:
    both = [find(evidence(one), 10) for one in (pairs, [(later, earlier) for earlier, later in pairs])]
    assert both.count(Finding.HARM) <= 1


@given(stretches)
def test_a_trial_comes_to_an_end(pairs: list[tuple[int, int]]) -> None:
    if len(pairs) >= MOST_PAIRS:
        assert find(evidence(pairs), 10) is not Finding.OPEN


@pytest.mark.parametrize("spread", [0.2, 0.5, 1.5])
@pytest.mark.parametrize("workloads", [1, 3, 8])
def test_noise_alone_is_called_harm_in_few_trials_even_under_wild_noise(
    spread: float, workloads: int
) -> None:
    chance = random.Random(7)
    trials = 600
    of_host = of_workloads = 0
    for _ in range(trials):
        windows: tuple[tuple[tuple[str, int], ...], ...] = ()
        weighed = weigh(Trial())
        while not windows or not is_over(weighed, 10, len(windows) // 2):
            for _ in range(2):
                seen = [
                    (str(name), round(2000 * chance.lognormvariate(0, spread))) for name in range(workloads)
                ]
                windows = (*windows, tuple(seen))
            weighed = weigh(Trial(windows=windows))
        of_host += find(weighed.host, 10) is Finding.HARM
        of_workloads += sum(find(each, 10) is Finding.HARM for each in weighed.workloads.values())
    assert of_host <= trials * 0.05
    assert of_workloads <= trials * workloads * 0.05


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
