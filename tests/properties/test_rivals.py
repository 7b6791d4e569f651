"""What holds for BVT and PARTIES in every period, and for every partition."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dasec.model import Core, Period
from dasec.plan import plan
from dasec.policy import Policy
from dasec.rivals.bvt import Bvt
from dasec.rivals.parties import Parties, PartiesState
from dasec.rivals.partition import deal, moved, undone

from .invariants import after
from .strategies import periods

RIVALS: tuple[Policy, ...] = (Bvt(), Parties())
PERIODS = 12
"""At 80 ms: two of PARTIES' intervals, so that transfers are made and taken back."""


@given(made=periods(), policy=st.sampled_from(RIVALS))
def test_what_a_rival_wants_breaks_no_invariant_and_settles_at_once(made: Period, policy: Policy) -> None:
    decision = policy.decide(made, policy.initial_state())
    planned = plan(made, decision)
    assert planned.violations == ()
    assert policy.decide(made, policy.initial_state()) == decision
    assert all(knobs.weight is None for knobs in decision.knobs.values())
    again = policy.decide(after(made, planned), decision.state)
    assert plan(after(made, planned), again).changes == ()


@given(made=periods())
def test_everybody_keeps_a_core_and_no_core_is_shared_while_there_are_enough(made: Period) -> None:
    policy, state = Parties(), Parties().initial_state()
    for _ in range(PERIODS):
        state = policy.decide(made, state).state
        assert isinstance(state, PartiesState)
        dealt = [core for _, cores in state.held for core in cores]
        assert all(cores for _, cores in state.held)
        assert set(dealt) <= set(made.topology.cores)
        if len(state.held) <= len(made.topology.cores):
            assert len(dealt) == len(set(dealt))
            assert set(dealt) == set(made.topology.cores) or not state.held


@given(workloads=st.integers(1, 9), cores=st.integers(1, 9))
def test_parts_differ_by_one_core_at_most(workloads: int, cores: int) -> None:
    numbers = [Core(number) for number in range(cores)]
    sizes = [len(held) for held in deal([str(each) for each in range(workloads)], numbers).values()]
    assert max(sizes) - min(sizes) <= 1
    assert min(sizes) >= 1
    assert sum(sizes) == max(workloads, cores)


@given(made=periods())
def test_a_transfer_that_is_undone_leaves_no_trace(made: Period) -> None:
    policy, state = Parties(), Parties().initial_state()
    for _ in range(PERIODS):
        before, state = state, policy.decide(made, state).state
        assert isinstance(before, PartiesState)
        assert isinstance(state, PartiesState)
        if state.trial and state.transfers > before.transfers > 0:
            held = dict(before.held)
            assert undone(moved(held, state.trial.transfer), state.trial.transfer) == held
            assert dict(state.held) == moved(held, state.trial.transfer)
