"""What holds of the guard whatever happens: it is a policy like any other, and undoes what it lets happen."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dasec.guard import Guarded, GuardParameters, GuardState, Verdict
from dasec.guard.judge import MOST_PAIRS, Evidence, SoFar, find
from dasec.guard.state import Trial
from dasec.guard.switch import held
from dasec.guard.trial import judged, weigh
from dasec.model import Core, Knob, Knobs, Period, PolicyState, VcpuId
from dasec.plan import plan
from dasec.policies import POLICIES, Parameters, policy_named

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


@settings(max_examples=40)
@given(life=lives(), name=st.sampled_from(["critical", "bvt"]), masks=st.randoms(use_true_random=False))
def test_a_policy_that_wishes_no_mask_has_a_guard_that_writes_none_whoever_changes_masks(
    life: list[Period], name: str, masks: random.Random
) -> None:
    policy = Guarded(policy_named(name, Parameters()), EAGER)
    state: PolicyState = policy.initial_state()
    knobs: dict[VcpuId, Knobs] = {}
    allowed = frozenset(life[0].topology.cores)
    for made in life:
        if masks.random() < 0.2:
            allowed = frozenset(masks.sample(made.topology.cores, masks.randint(1, CORES)))
        there = _under(made, knobs, allowed)
        decision = policy.decide(there, state)
        planned = plan(there, decision)
        assert not any(change.knob is Knob.AFFINITY for change in planned.changes)
        knobs.update(after(there, planned).knobs)
        state = decision.state


def _under(made: Period, knobs: dict[VcpuId, Knobs], allowed: frozenset[Core]) -> Period:
    """The period with these knobs, where an administrator has given that mask to all that we may move."""
    workloads = [
        replace(each, vcpus=tuple([vcpu._replace(allowed=allowed) for vcpu in each.vcpus]))
        for each in made.workloads
    ]
    present = {vcpu: knobs.get(vcpu, first) for vcpu, first in made.knobs.items()}
    shown = {
        vcpu: each if each.affinity is None else each._replace(affinity=allowed)
        for vcpu, each in present.items()
    }
    return replace(made, workloads=tuple(workloads), knobs=shown)


stretches = st.lists(st.tuples(st.integers(1000, 10**6), st.integers(1000, 10**6)), max_size=12)


def evidence(pairs: list[tuple[int, int]]) -> Evidence:
    """Of the host, whose only workload was seen in these pairs of windows."""
    return weigh(Trial(windows=tuple((("a", one),) for pair in pairs for one in pair)), 0).host


@given(stretches)
def test_windows_are_never_harm_both_ways(pairs: list[tuple[int, int]]) -> None:
    swapped = [(later, earlier) for earlier, later in pairs]
    both = [find(evidence(one), 12, len(pairs)) for one in (pairs, swapped)]
    assert both.count(SoFar.HARM) <= 1


@pytest.mark.parametrize(("lead", "finding"), [(25, SoFar.HARM), (10, SoFar.FINE)])
def test_at_the_end_of_a_trial_what_is_likelier_for_the_host_holds(lead: int, finding: SoFar) -> None:
    seen = Evidence([lead] * MOST_PAIRS)
    assert find(seen, 12, MOST_PAIRS - 1) is SoFar.OPEN
    assert find(seen, 12, MOST_PAIRS) is finding


@given(stretches)
def test_a_trial_comes_to_an_end(pairs: list[tuple[int, int]]) -> None:
    if len(pairs) >= MOST_PAIRS:
        assert find(evidence(pairs), 12, len(pairs)) is not SoFar.OPEN


Windows = Sequence[Sequence[tuple[str, int]]]


def tried(windows: Windows, passes: int) -> tuple[SoFar, int]:
    """What a trial of these windows says (harm, if to anybody), and after how many pairs."""
    for pairs in range(1, len(windows) // 2 + 1):
        judgement = judged(Trial(windows=tuple(map(tuple, windows[: 2 * pairs]))), 12, passes)
        if judgement.is_over:
            return SoFar.HARM if judgement.harmed else judgement.host, pairs
    raise AssertionError(f"no end after {len(windows)} windows")


@pytest.mark.parametrize(("spread", "most"), [(0.2, 0.01), (0.5, 0.04), (1.5, 0.25)])
@pytest.mark.parametrize("workloads", [1, 3, 8])
def test_a_policy_that_gains_passes_most_trials_even_under_wild_noise(
    spread: float, most: float, workloads: int
) -> None:
    chance = random.Random(7)
    off, trials = 0, 200
    for _ in range(trials):
        windows = [
            [
                (str(name), round((3000, 2000)[window % 2] * chance.lognormvariate(0, spread)))
                for name in range(workloads)
            ]
            for window in range(2 * MOST_PAIRS)
        ]
        off += tried(windows, 0)[0] is SoFar.HARM
    assert off <= trials * most


RECORDED = json.loads((Path(__file__).parent / "recorded_stretches.json").read_text(encoding="utf-8"))
"""Stretches (thousandths; 0: too little to see) of each workload in each period of 15 runs under `critical`
all the time (docs/guard.md, "Noise")."""


def off_percent(factor: float, passes: int) -> int:
    """In how many of the recorded trials it is off, if each window with the policy is so much longer."""
    verdicts = []
    for table in RECORDED.values():
        for start in range(0, len(table[0]) - 2 * MOST_PAIRS + 1, 4):
            windows = [
                [
                    (str(name), round(row[start + window] * (factor if window % 2 else 1)))
                    for name, row in enumerate(table)
                    if row[start + window]
                ]
                for window in range(2 * MOST_PAIRS)
            ]
            verdicts.append(tried(windows, passes)[0])
    return 100 * verdicts.count(SoFar.HARM) // len(verdicts)


@pytest.mark.parametrize(
    ("factor", "passes", "least", "most"),
    [
        (2.0, 0, 99, 100),
        (1.3, 0, 97, 100),
        (1.18, 0, 95, 100),
        (1.1, 0, 73, 100),
        (1.0, 0, 0, 36),
        (1.0, 3, 0, 7),
        (1 / 1.05, 0, 0, 14),
        (1 / 1.05, 3, 0, 3),
        (1 / 1.1, 0, 0, 5),
        (1 / 1.35, 0, 0, 1),
    ],
)
def test_in_recorded_noise_harm_is_found_and_a_gain_is_left_alone(
    factor: float, passes: int, least: int, most: int
) -> None:
    assert least <= off_percent(factor, passes) <= most


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
